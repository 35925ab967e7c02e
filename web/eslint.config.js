import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["node_modules", "public", "eslint.config.js"] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      // Whatever agents and strangers say is text. These would make it markup or code.
      "no-eval": "error",
      "no-restricted-properties": [
        "error",
        { property: "innerHTML", message: "Text is text: render it." },
        { property: "outerHTML", message: "Text is text: render it." },
        { property: "insertAdjacentHTML", message: "Text is text: render it." },
      ],
      "no-restricted-syntax": [
        "error",
        { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: "Text is text: render it." },
      ],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
    },
  },
);
