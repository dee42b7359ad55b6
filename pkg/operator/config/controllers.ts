import { controllersIn, type FlagSection } from './flag-section.ts';
import type { Program } from './flag.ts';
import { leasesOf } from './lease-groups.ts';
import { FlagError } from './flag-error.ts';

/** Names of our controllers, which run unless the flag says otherwise. */
export const OWN_CONTROLLERS: readonly string[] = [
  'machine-deployment',
  'machine-set',
  'safety.overshoot',
  'machine',
  'machine-class',
  'secret',
  'role-binding',
  'safety.orphan-vms',
  'safety.unmanaged-nodes',
];

/** Those that a program runs: each of the original's is named for the Lease of its controllers. */
function usualIn(program: Program): readonly string[] {
  if (program === 'machinist run') return OWN_CONTROLLERS;
  return OWN_CONTROLLERS.filter((name) => leasesOf(new Set([name]), []).has(program));
}

/** Reads `--controllers`; `also`: those that other flags ask for. Throws FlagError. */
export function controllersFrom(
  program: Program,
  {
    typed,
    also,
  }: { readonly typed: readonly string[]; readonly also: (named: readonly string[]) => readonly string[] },
  sections: readonly FlagSection[],
): ReadonlySet<string> {
  const allOf = Object.assign({}, ...sections.map((one) => one.allOf ?? {})) as Readonly<
    Record<string, readonly string[]>
  >;
  const onRequest = sections.flatMap(controllersIn);
  const all = [...OWN_CONTROLLERS, ...onRequest];
  const named = typed.flatMap((name) => allOf[name] ?? [name]);
  const names = new Set([...named, ...also(named)]);
  const requested = onRequest.filter((name) => names.has(name));
  if (names.has('*')) {
    if (names.size === requested.length + 1) return new Set([...usualIn(program), ...requested]);
    throw new FlagError(
      `--controllers: ${JSON.stringify(typed.join(','))} is not valid: "*" can be combined only with ${[...onRequest, ...Object.keys(allOf)].join(', ')}`,
    );
  }
  const unknown = [...names].find((name) => !all.includes(name));
  if (unknown !== undefined || typed.length === 0) {
    throw new FlagError(
      `--controllers: ${JSON.stringify(unknown ?? '')} is not valid: expected "*" or a comma-separated list of ${[...all, ...Object.keys(allOf)].join(', ')}`,
    );
  }
  return new Set(all.filter((name) => names.has(name)));
}
