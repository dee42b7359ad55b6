import { nonEmptyText } from '../../../apis/members.ts';

/** What a provider of the older contract takes for final. It is shown, and has no further consequence. */
export interface TerminalFailure {
  readonly reason: string;
  readonly message: string;
}

/** The terminal failure that a status reports; undefined: none. */
export function terminalFailureOf(status: Readonly<Record<string, unknown>>): TerminalFailure | undefined {
  const reason = nonEmptyText(status['failureReason']);
  const message = nonEmptyText(status['failureMessage']);
  if (reason === undefined && message === undefined) return undefined;
  return { reason: reason ?? '', message: message ?? '' };
}
