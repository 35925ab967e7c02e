// xterm writes rules into <style> elements and colours into style="" attributes. The content security policy of the page allows
// neither, and stays that way: it is what keeps text of strangers from becoming part of the page. What a script does
// through the CSSOM is allowed, so these four places are put that way when the dashboard is built. Another version of xterm in which
// they are not found as they are here fails the build.

import type { Plugin } from "vite";

const STYLE_ELEMENT = /[\w.]+\.createElement\("style"\)/g;
const STYLE_ATTRIBUTE = '_addStyle(t,e){t.setAttribute("style",`${t.getAttribute("style")||""}${e};`)}';
const STYLE_BY_CSSOM = "_addStyle(t,e){t.style.cssText+=e+\";\"}";

/** Replace them in the text of xterm. */
export function withoutInlineStyles(code: string): string {
  const elements = code.match(STYLE_ELEMENT)?.length ?? 0;
  const attributes = code.split(STYLE_ATTRIBUTE).length - 1;
  if (elements !== 3 || attributes !== 1) {
    throw new Error(`xterm styles itself otherwise than is known here: ${elements} elements, ${attributes} attributes`);
  }
  const written = code.replace(STYLE_ELEMENT, "perdureStyleSheet()").replace(STYLE_ATTRIBUTE, () => STYLE_BY_CSSOM);
  return `import { styleSheet as perdureStyleSheet } from "/src/pane/styling.ts";\n${written}`;
}

export const xtermWithoutInlineStyles: Plugin = {
  name: "xterm-without-inline-styles",
  transform(code, id) {
    return /@xterm\/xterm\/lib\/xterm\.mjs$/.test(id) ? { code: withoutInlineStyles(code), map: null } : null;
  },
};
