import { NODE_SYNC_REFUSED_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { ApiError, isDenial } from '../../kube/client/errors.ts';
import type { ReportedOnce } from '../../work/reconcile/reported-once.ts';

/** Condition type on a Machine, MachineSet or MachineDeployment of which something was refused for a Node. There is none otherwise. */
export const NODE_SYNC_REFUSED = 'NodeSyncRefused';

export interface NodeRefusal {
  /** As the node template names it, such as `label a`. */
  readonly what: string;
  readonly why: string;
}

/** How a refusal of whatever we ask for is named. */
export const ALL_CHANGES = 'all changes';

/** Longest text about one entry, and about all of them. */
const LONGEST_REASON = 300;
const LONGEST_TEXT = 1_000;

/** Whether a change failed in a way that somebody must be told of: refused, or a webhook that does not work. */
export function isWorthReporting(err: unknown): err is ApiError {
  return isDenial(err) || ApiError.is(err, 'InternalError');
}

/** Whether an error that is worth reporting may be over the next time: what fails once, as in a change of etcd's leader, is no refusal. */
export function isFirstFailure(err: ApiError, reported: ReportedOnce, uid: string, what: string): boolean {
  return !isDenial(err) && reported.isNew(uid, what);
}

/** The words of the API server, without the Node's name: the same for every Node. */
export function reasonFor(err: ApiError, nodeName: string): string {
  const causes = (err.status?.details?.causes ?? []).map(({ field = '', message = '' }) =>
    field === '' ? message : `${field}: ${message}`,
  );
  const text =
    causes.length > 0 ? [...new Set(causes)].join('; ') : err.message.replaceAll(`"${nodeName}"`, 'of the machine');
  return cut(text, LONGEST_REASON);
}

/** What was refused, for the Machine's annotation; the same refusals are the same text. */
export function describeRefusals(refusals: readonly NodeRefusal[]): string {
  const texts = refusals.map(({ what, why }) => `${what} (${why})`);
  return cut(texts.toSorted().join(', '), LONGEST_TEXT);
}

/** What was refused for the Node of a machine, as the machine says itself. */
export function refusedFor({ metadata }: Pick<Machine, 'metadata'>): string | undefined {
  const text = metadata.annotations?.[NODE_SYNC_REFUSED_ANNOTATION] ?? '';
  return text === '' ? undefined : text;
}

/** What was refused for the Nodes of several machines; undefined when nothing was. */
export function nodeSyncRefusal(machines: readonly Machine[]): { reason: 'Refused'; message: string } | undefined {
  const texts = machines.map(refusedFor).filter((text) => text !== undefined);
  const [first] = texts.toSorted();
  if (first === undefined) return undefined;
  const nodes = texts.length === 1 ? 'Node of one machine' : `Nodes of ${texts.length} machines`;
  return { reason: 'Refused', message: `Changes of the ${nodes} are refused: ${first}` };
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
