import { expect, test } from "vitest";
import { cleanLine, cleanText, cut, plainOutput } from "../src/text/clean";

test("marks of direction are written out, so no line reads other than it is", () => {
  expect(cleanText("rm \u202etxt.fdp")).toBe("rm ⟨U+202E⟩txt.fdp");
  expect(cleanText("a\u2066b\u200fc\u061cd")).toBe("a⟨U+2066⟩b⟨U+200F⟩c⟨U+061C⟩d");
});

test("what cannot be seen is shown", () => {
  expect(cleanText("pass\u200bword\ufeff")).toBe("pass⟨U+200B⟩word⟨U+FEFF⟩");
  expect(cleanText("tag\u{e0041}")).toBe("tag⟨U+E0041⟩");
  expect(cleanText("\u001b[31mred\u0007")).toBe("␛[31mred␇");
  expect(cleanText("\u009b31m")).toBe("⟨U+009B⟩31m");
  expect(cleanText("half \ud83d of one")).toBe("half ⟨U+D83D⟩ of one");
});

test("every control, mark of direction and hidden character is gone from what is shown", () => {
  for (let code = 0; code < 0x3000; code += 1) {
    const shown = cleanText(String.fromCharCode(code));
    expect(shown, code.toString(16)).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069]/);
  }
});

test("lines, tabs, emoji and other scripts stay", () => {
  expect(cleanText("a\tb\r\nc")).toBe("a\tb\nc");
  expect(cleanText("👩‍💻 שלום 你好")).toBe("👩‍💻 שלום 你好");
});

test("one line is one line", () => {
  expect(cleanLine("a\n  b\tc")).toBe("a ⏎ b c");
});

test("output is shown without what only a terminal understands", () => {
  expect(plainOutput("\u001b[1;32mok\u001b[0m \u001b]0;title\u0007done\r\n")).toBe("ok done\n");
  expect(plainOutput("10%\r50%\r100%\nnext")).toBe("100%\nnext");
  expect(plainOutput("half\r")).toBe("half");
});

test("a cut goes through no character", () => {
  expect(cut("👩👩👩", 2)).toBe("👩…");
  expect(cut("abc", 3)).toBe("abc");
});
