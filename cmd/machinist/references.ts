import { CommandError } from './command-error.ts';
import { didYouMean } from './did-you-mean.ts';
import { isNameOf, type KindName } from './kinds.ts';

/** An object that was named on the command line. */
export interface Reference {
  readonly kind: KindName;
  readonly name: string;
}

export interface References {
  readonly named: readonly Reference[];
  /** Set where a kind stands without a name: all of its objects, or those that a selector selects. */
  readonly allOf?: KindName;
}

/**
 * What was named as `TYPE/NAME...`, `TYPE NAME...`, `TYPE`, or, where only objects of `kinds[0]` are to be expected, as `NAME...`. Throws
 * CommandError.
 */
export function parseReferences(
  words: readonly string[],
  kinds: readonly [KindName, ...KindName[]],
  { mayOmitType = false }: { readonly mayOmitType?: boolean } = {},
): References {
  if (words.includes('')) throw new CommandError('a name cannot be empty');
  const [first, ...others] = words;
  const [defaultKind] = kinds;
  if (first === undefined) return { named: [], ...(mayOmitType ? { allOf: defaultKind } : {}) };
  if (words.some((word) => word.includes('/')))
    return { named: words.map((word) => slashed(word, kinds, mayOmitType)) };
  const kind = kinds.find((one) => isNameOf(one, first));
  if (kind !== undefined) {
    return others.length === 0 ? { named: [], allOf: kind } : { named: others.map((name) => ({ kind, name })) };
  }
  if (!mayOmitType) throw unknownType(first, kinds);
  return { named: words.map((name) => ({ kind: defaultKind, name })) };
}

/** Of commands that are about objects that somebody names. Throws CommandError where none is. */
export function requireNames({ named }: References, [kind]: readonly [KindName, ...KindName[]]): readonly Reference[] {
  if (named.length > 0) return named;
  throw new CommandError(`expected a name, such as ${kind.shortNames[0] ?? kind.name}/NAME`);
}

function slashed(word: string, kinds: readonly [KindName, ...KindName[]], mayOmitType: boolean): Reference {
  const [type = '', name = '', ...rest] = word.split('/');
  if (!word.includes('/')) {
    if (mayOmitType && !kinds.some((kind) => isNameOf(kind, word))) return { kind: kinds[0], name: word };
    throw new CommandError(`"${word}" has no name; use either TYPE NAME... or TYPE/NAME...`);
  }
  if (type === '' || name === '' || rest.length > 0) throw new CommandError(`expected TYPE/NAME instead of "${word}"`);
  const kind = kinds.find((one) => isNameOf(one, type));
  if (kind === undefined) throw unknownType(type, kinds);
  return { kind, name };
}

function unknownType(type: string, kinds: readonly KindName[]): CommandError {
  const known = kinds.map(({ name, shortNames }) => [name, ...shortNames].join(' or ')).join(', ');
  const names = kinds.flatMap(({ name, shortNames }) => [name, ...shortNames]);
  return new CommandError(`unknown type "${type}"; this command supports ${known}${didYouMean(type, names)}`);
}
