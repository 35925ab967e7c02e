// For xterm, which is built to call it in place of making a <style> element: see xterm-without-inline-styles.ts.

/** Stands in for a <style> element, of which the page's policy stops even an empty one: it is written to, put somewhere and removed. */
export function styleSheet(): HTMLElement {
  const element = document.createElement("template");
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  Object.defineProperty(element, "textContent", {
    get: () => "",
    set: (rules: string) => sheet.replaceSync(rules),
  });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
    Element.prototype.remove.call(element);
  };
  return element;
}
