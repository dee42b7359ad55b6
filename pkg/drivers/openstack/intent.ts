import type { MachineIdentity } from '../machine-identity.ts';

/*
 * Nova has no token that makes a repeated creation harmless. So the port that a server is made with is made first, and its description
 * says for whom, and from when on there may be a server: the request for it is only sent after that was written. Whoever comes next, in
 * this process or another, reads it there. Cinder has no such token either: disks are asked for in the same way.
 */
const OWN = 'machinist ';

export interface PortIntent {
  /** For whom the port is; equal texts are the same machine. */
  readonly owner: string;
  /** When a server or one of its disks was about to be asked for, in ms since the epoch, and by whom; undefined: none was. */
  readonly sent: { readonly atMs: number; readonly by: string } | undefined;
}

/** For whom something is made, as a description says it: of ports, volumes and floating IPs. */
export function ownerText({ cluster, namespace, uid = '' }: MachineIdentity): string {
  const of = Object.entries({ cluster, namespace, uid }).map(([key, value]) => `${key}=${encodeURIComponent(value)}`);
  return OWN + of.join(' ');
}

export function intentText({ owner, sent }: PortIntent): string {
  return sent === undefined ? owner : `${owner} sent=${sent.atMs} by=${sent.by}`;
}

/** What a description says; undefined for one that is not ours. */
export function parseIntent(description: string): PortIntent | undefined {
  if (!description.startsWith(OWN)) return undefined;
  const [, owner = description, atMs, by] = /^(.*) sent=(\d+) by=(\S+)$/.exec(description) ?? [];
  return { owner, sent: atMs === undefined || by === undefined ? undefined : { atMs: Number(atMs), by } };
}

/** What is not answered is given up after 90 s (see http.ts); with some room for clocks. */
const LONGEST_ANSWER_MS = 100_000;
/** Enough for services that answer within seconds. */
const READY_MS = 20_000;

/** How long after its mark a request may be sent: what is not answered must be over before the mark is. A longer `answerMs` gives more. */
export function readyMsOf(answerMs: number): number {
  return Math.max(Math.min(READY_MS, answerMs / 2), answerMs - LONGEST_ANSWER_MS);
}

/** Whether a mark of that time still holds everybody else for long enough that its request may be sent. */
export function mayStillRequest(atMs: number, nowMs: number, answerMs: number): boolean {
  return nowMs - atMs <= readyMsOf(answerMs);
}

/** How long a server that was asked for may still appear, so that no other one may be asked for: 0 when it may. */
export function leftMsOf(intent: PortIntent | undefined, nowMs: number, answerMs: number): number {
  if (intent?.sent === undefined) return 0;
  // A clock that was set back must not hold a machine for ever.
  return Math.min(answerMs, Math.max(0, intent.sent.atMs + answerMs - nowMs));
}
