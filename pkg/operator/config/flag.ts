/** The programs that take flags: the one-process layout, and the original's two. */
export type Program = 'machinist run' | 'machine-controller-manager' | 'machine-controller';

/** What a flag's value must be. Durations are Go durations (`10m`, `1h30m`), and need a unit. */
export type FlagKind =
  | 'bool'
  | 'int'
  | 'float'
  /** Requests a second: `inf` and `nan` mean no limit, as 0 does. */
  | 'rate'
  | 'duration'
  | 'string'
  | 'list'
  | 'address'
  | 'media-type';

/** One flag: the row from which parsing, `--help`, validation and docs/reference/flags.md are made. */
export interface Flag {
  readonly name: string;
  readonly kind: FlagKind;
  /** As it would be typed, empty if left out. A function where the programs differ. */
  readonly default?: string | ((program: Program) => string);
  readonly help: string;
  /** Heading of `--help` and of the reference. */
  readonly group: string;
  /** Which programs act on it; the others accept it with a warning, so that manifests can be shared. */
  readonly programs: readonly Program[];
  /** Smallest and largest value; of durations in milliseconds, where 0 is the smallest unless said. */
  readonly min?: number;
  readonly max?: number;
  /** A smaller value is accepted, as the original does, and this one used instead, which a warning says. */
  readonly atLeast?: number;
  readonly oneOf?: readonly string[];
  /** Accepted for the original's sake, without effect, or without any yet. */
  readonly unused?: true;
}

/** What a flag has beside its name and its group; its programs are those of the group unless it says others. */
export type FlagRow = Omit<Flag, 'name' | 'group' | 'programs'> & Partial<Pick<Flag, 'programs'>>;

function rowOf(kind: FlagKind) {
  return (help: string, more: Omit<FlagRow, 'kind' | 'help'> = {}): FlagRow => ({ kind, help, ...more });
}

export const bool = rowOf('bool');
export const text = rowOf('string');
export const list = rowOf('list');
export const int = rowOf('int');
export const float = rowOf('float');
export const rate = rowOf('rate');
export const duration = rowOf('duration');
export const address = rowOf('address');
export const mediaType = rowOf('media-type');

/** The default of `flag` in `program`, as it would be typed. */
export function defaultOf({ default: usual = '' }: Flag, program: Program): string {
  return typeof usual === 'string' ? usual : usual(program);
}
