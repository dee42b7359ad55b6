import { Argument } from 'commander';

import type { KindName } from './kinds.ts';

/** An argument that names objects, so that their names can be completed. The first kind is meant where a type may be omitted. */
export class ReferenceArgument extends Argument {
  readonly kinds: readonly [KindName, ...KindName[]];
  readonly mayOmitType: boolean;

  constructor(
    name: string,
    kinds: readonly [KindName, ...KindName[]],
    { mayOmitType = false }: { readonly mayOmitType?: boolean } = {},
  ) {
    super(name, describe(kinds, mayOmitType));
    this.kinds = kinds;
    this.mayOmitType = mayOmitType;
  }
}

function describe(kinds: readonly KindName[], mayOmitType: boolean): string {
  const types = kinds.map(({ name, shortNames }) => [name, ...shortNames.map((short) => `(${short})`)].join(' '));
  return `${mayOmitType ? 'NAME..., ' : ''}TYPE NAME... or TYPE/NAME...; types: ${types.join(', ')}`;
}
