import { expect, test } from "vitest";
import { withoutInlineStyles } from "../xterm-without-inline-styles";

test("a terminal that would style itself in another way is not built", () => {
  expect(() => withoutInlineStyles('document.createElement("style")')).toThrow("1 elements, 0 attributes");
});
