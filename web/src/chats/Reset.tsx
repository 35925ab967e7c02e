import { ask } from "../api/ask";
import type { Chat } from "../api/shapes";
import { Confirm } from "../shell/Confirm";
import { go } from "../shell/route";
import { Said } from "../text/Said";

/** Close a chat and begin another in its place; asked twice, since whoever is in it is answered anew from then on. */
export function Reset({ chat }: { chat: Chat }) {
  const reset = async (): Promise<void> => {
    const { begun } = await ask<{ begun: Chat }>("POST", `/api/chats/${encodeURIComponent(chat.id)}/reset`, {});
    go("chats", begun.id);
  };
  return (
    <Confirm
      label="Reset…"
      name="reset-title"
      title={
        <>
          Begin <Said text={chat.where} /> anew?
        </>
      }
      choices={[{ label: "Begin anew", isDanger: true, action: reset }]}
    >
      <p>This chat is closed, and another begun in its place. The agent then knows nothing of what was said here.</p>
      <p class="soft">Nothing is deleted: it can still be read and found, and gone on with by <code>perdure chats resume</code>.</p>
    </Confirm>
  );
}
