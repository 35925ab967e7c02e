// xterm puts rules into <style> elements and colours into style="" attributes. Our content security policy allows neither, and
// stays that way: it is what keeps text of strangers from becoming part of the page. What a script does through the
// CSSOM is allowed, so xterm is handed a document that takes the same words by that way:
//   - what is written into one of its <style> elements goes into a constructed style sheet of the page;
//   - what is set as a style="" attribute is set as the element's style.

/** A document like the page's own, for `documentOverride`, whose elements are styled without inline styles. */
export function documentForTerminal(): Document {
  return new Proxy(document, {
    get(target, name) {
      if (name === "createElement") return create;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
    set: (target, name, value) => Reflect.set(target, name, value, target),
  });
}

function create(tag: string, options?: ElementCreationOptions): HTMLElement {
  if (tag === "style") return sheetHolder();
  const element = document.createElement(tag, options);
  element.setAttribute = setAttribute;
  return element;
}

function setAttribute(this: HTMLElement, name: string, value: string): void {
  if (name === "style") this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
}

/** Stands in for a <style> element, of which even an empty one is stopped: it can be written to, put somewhere and removed. */
function sheetHolder(): HTMLElement {
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
