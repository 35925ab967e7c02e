import { signal } from "@preact/signals";

/** The API said no: a code for programs, a sentence for people. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly data: unknown = null,
  ) {
    super(message);
  }
}

/** Whether whoever looks at this page is known; false once the server said it does not know them. */
export const isKnown = signal(true);

/** Whether they were not known so often that the server does not say more. */
export const isTooOften = signal(false);

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** The answer to a question, or `Refused` with the sentence to show. */
export async function ask<Answer>(method: Method, path: string, body?: unknown): Promise<Answer> {
  const response = await send(method, path, body);
  if (response.status === 204) return undefined as Answer;
  return (await response.json()) as Answer;
}

async function send(method: Method, path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const told = { accept: "application/json", ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) };
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      credentials: "same-origin",
      cache: "no-store",
      headers: told,
      body: body === undefined ? null : JSON.stringify(body),
    });
  } catch {
    throw new Refused(0, "UNREACHABLE", "Perdure does not answer. Is `perdure up` still running?");
  }
  // Only who is not known is told that it was too often.
  if (response.status === 401 || response.status === 429) {
    isTooOften.value = response.status === 429;
    isKnown.value = false;
  }
  if (!response.ok && response.status !== 304) throw await refusal(response);
  return response;
}

async function refusal(response: Response): Promise<Refused> {
  try {
    const said = (await response.json()) as { code?: string; message?: string; data?: unknown };
    return new Refused(response.status, said.code ?? "ERROR", said.message ?? response.statusText, said.data);
  } catch {
    return new Refused(response.status, "ERROR", `The server answered ${response.status}.`);
  }
}

const known = new Map<string, { tag: string; answer: unknown }>();

/** Like a GET by `ask`, of something that is asked again and again: what has not changed is not sent again. */
export async function askAgain<Answer>(path: string): Promise<Answer> {
  const before = known.get(path);
  const response = await send("GET", path, undefined, before ? { "if-none-match": before.tag } : {});
  if (response.status === 304 && before) return before.answer as Answer;
  const answer = (await response.json()) as Answer;
  const tag = response.headers.get("etag");
  if (tag) known.set(path, { tag, answer });
  return answer;
}

/** Every page of a list, up to so many. */
export async function askAll<Item>(path: string, most = 1000): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | null = null;
  do {
    const url: string = cursor === null ? path : `${path}${path.includes("?") ? "&" : "?"}cursor=${encodeURIComponent(cursor)}`;
    const page: { items: Item[]; next: string | null } = await ask("GET", url);
    items.push(...page.items);
    cursor = page.next;
  } while (cursor !== null && items.length < most);
  return items;
}

/** What went wrong, as a sentence. */
export function sentence(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
