import type { FlagRow } from './flag.ts';
import type { LeaseGroup } from './lease-groups.ts';
import type { ValueReader } from './value-reader.ts';

/** What an API that is served beside ours has on the command line of `machinist run`. */
export interface FlagSection<Settings = unknown> {
  /** Of its flags, in `--help` and in the reference. */
  readonly heading: string;
  readonly flags: Readonly<Record<string, FlagRow>>;
  /** Its controllers, which run only where they are named, by their Leases. */
  readonly leases: readonly LeaseGroup[];
  /** What may be typed for several of them. */
  readonly allOf?: Readonly<Record<string, readonly string[]>>;
  /** Why namespaces that `--cells` selects cannot have it, with its flag and what to do instead; undefined: they can. */
  notInCells?(settings: Settings, controllers: ReadonlySet<string>): string | undefined;
  /** What its flags say. Throws FlagError. */
  settings(read: ValueReader): Settings;
  /** Which of its controllers run with these settings beside those that are named. Throws FlagError for one that cannot. */
  alsoRuns?(settings: Settings, named: readonly string[]): readonly string[];
}

/** What the flags of an API say, by its section. */
export type SettingsOf = <Settings>(section: FlagSection<Settings>) => Settings;

/** Names of its controllers. */
export function controllersIn({ leases }: Pick<FlagSection, 'leases'>): readonly string[] {
  return leases.flatMap(({ needed, optional }) => [...needed, ...optional]);
}
