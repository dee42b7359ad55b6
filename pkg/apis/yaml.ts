import { load } from 'js-yaml';

/** A text that is no YAML. The message names the place and the mistake, and quotes nothing: the text may hold credentials. */
export class YamlError extends Error {
  override readonly name = 'YamlError';
}

/** Where js-yaml found a mistake. Its message quotes the lines around it. */
interface Exception {
  readonly reason?: unknown;
  readonly mark?: { readonly line?: unknown; readonly column?: unknown };
}

/** Reasons that name an alias, a tag or an escape sequence quote the text; those of words alone do not. */
const PLAIN_REASON = /^[a-z][a-z ,;()-]*$/i;

/**
 * Parses YAML or JSON. Throws YamlError, without a cause that would carry what must not be told. `mayAlias: false` for what is written out
 * again, and comes from somebody else: a few lines of aliases of aliases come to more than fits into any memory.
 */
export function parseYaml(text: string, { mayAlias = true }: { readonly mayAlias?: boolean } = {}): unknown {
  try {
    return load(text, mayAlias ? {} : { maxAliases: 0 });
  } catch (err) {
    throw new YamlError(describe(err as Exception)); // whatever it is, its members are looked at one by one
  }
}

const NO_YAML = 'not valid YAML';

function told(reason: string): string {
  if (reason.startsWith('aliases exceeded')) return 'aliases are not allowed';
  return PLAIN_REASON.test(reason) ? reason : NO_YAML;
}

function describe({ reason, mark }: Exception): string {
  const what = typeof reason === 'string' ? told(reason) : NO_YAML;
  const { line, column } = mark ?? {};
  if (typeof line !== 'number' || typeof column !== 'number') return what;
  return `line ${line + 1}, column ${column + 1}: ${what}`;
}
