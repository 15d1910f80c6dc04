/** Code as coloured pieces. The tokenizer and each language's grammar are loaded when a text first needs them. */

const LONGEST = 50_000; // characters; what is longer stays plain

const LANGUAGES = {
  asm: "asm", bash: "bash", sh: "bash", shell: "bash", zsh: "bash", console: "bash", c: "c", h: "c", cpp: "c", "c++": "c",
  css: "css", scss: "css", csv: "csv", diff: "diff", patch: "diff", dockerfile: "docker", docker: "docker", git: "git",
  go: "go", golang: "go", html: "html", http: "http", ini: "ini", java: "java", kotlin: "java", js: "js", jsx: "js",
  javascript: "js", mjs: "js", json: "json", jsonc: "json", lua: "lua", make: "make", makefile: "make", md: "md",
  markdown: "md", perl: "pl", pl: "pl", py: "py", python: "py", python3: "py", regex: "regex", rs: "rs", rust: "rs",
  sql: "sql", toml: "toml", ts: "ts", tsx: "ts", typescript: "ts", xml: "xml", svg: "xml", yaml: "yaml", yml: "yaml",
};

/** The grammar for a language as a fence names it, or null. @param {string} name */
export function languageOf(name) {
  const known = name.toLowerCase();
  return Object.hasOwn(LANGUAGES, known) ? LANGUAGES[known] : null;
}

/** The code in pieces, each with its kind (undefined for plain text); null where it stays plain.
 * @param {string} code @param {string} name @returns {Promise<[string, string | undefined][] | null>} */
export async function coloured(code, name) {
  const language = languageOf(name);
  if (!language || code.length > LONGEST) return null;
  try {
    const { tokenizer } = await import("../vendor/highlight/tokenize.js");
    const pieces = [];
    const walk = tokenizer(code, (await grammar(language)).default, (text, kind) => text && pieces.push([text, kind]));
    for (let step = walk.next(); !step.done; ) step = walk.next((await grammar(step.value)).default);
    return pieces.map(([text]) => text).join("") === code ? pieces : null;
  } catch {
    return null; // colours are a help; the code is there without them
  }
}

const grammars = new Map();

function grammar(language) {
  if (!/^[a-z]{1,10}$/.test(language)) throw new TypeError(`no grammar of that name: ${language}`);
  if (!grammars.has(language)) grammars.set(language, import(`../vendor/highlight/languages/${language}.js`));
  return grammars.get(language);
}
