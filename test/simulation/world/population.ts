import type { Random } from '../../../pkg/base/random/random.ts';

/** What must not be in a world, and whether it was. */
export interface Judge {
  /** What must not be and was. */
  readonly findings: readonly string[];
  readonly vmsMade: number;
  /** Whether nothing else can be learned from this world. */
  readonly isHopeless: boolean;
  /** Notes something that must not be. */
  find(what: string): void;
  /** To be called now and then: looks at what takes too long. */
  look(): void;
}

/** What lives in a world of one kind: what is asked for there, what its users do, and what is judged. */
export interface Population {
  readonly ledger: Judge;
  /** A user does one of these things. */
  act(names: readonly string[], random: Random): void;
  /** Something happens to a machine by itself. */
  mishap(random: Random): void;
  /** The host of a machine gets another name. Absent where that does not happen. */
  renameHost?(random: Random): void;
  /** The control cluster was set back. */
  setBack(): void;
  /** Trouble begins; with a number, in that one of several places alone. Absent where there is one place. */
  troubleAt?(place: number | undefined): void;
  /** What lives where no trouble is, while there is trouble in one place. */
  readonly others?: Pick<Population, 'calm' | 'expectProgress' | 'isAsAsked' | 'shown'>;
  /** Trouble is over: users take back what keeps the rest from being as asked for. */
  calm(): void;
  /** Everything is expected to become as asked for from now on; what a runbook asks of users is done meanwhile. */
  expectProgress(withinMs: number): void;
  isAsAsked(): boolean;
  /** All is as asked for: only what is asked for from now on is a reason for what happens next. */
  settle(): void;
  /** What follows is a rest, in which users may ask how it is. */
  beginRest(): void;
  /** What is left over after the rest. */
  leftovers(): readonly string[];
  /** What is said at the end of the rest that is not so. */
  untruths(): readonly string[];
  /** Everything is deleted. */
  end(): void;
  /** What is left of it. */
  left(): readonly string[];
  /** How it is, for a finding. */
  shown(): string;
}
