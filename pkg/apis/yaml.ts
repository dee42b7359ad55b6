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

/** Parses YAML or JSON. Throws YamlError, without a cause that would carry what must not be told. */
export function parseYaml(text: string): unknown {
  try {
    return load(text);
  } catch (err) {
    throw new YamlError(describe(err as Exception)); // whatever it is, its members are looked at one by one
  }
}

function describe({ reason, mark }: Exception): string {
  const what = typeof reason === 'string' && PLAIN_REASON.test(reason) ? reason : 'not valid YAML';
  const { line, column } = mark ?? {};
  if (typeof line !== 'number' || typeof column !== 'number') return what;
  return `line ${line + 1}, column ${column + 1}: ${what}`;
}
