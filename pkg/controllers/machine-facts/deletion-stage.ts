import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';

/**
 * How far a deletion has come. The cursor is a fixed text inside `status.lastOperation.description`: the original reads
 * and writes the same texts, so that a deletion can change hands between it and us at any stage.
 *
 * | stage             | text                                                        | what happens there                     |
 * |-------------------|-------------------------------------------------------------|----------------------------------------|
 * | vm-status         | Set machine status to termination. Now, getting VM Status   | the Node's name is found out           |
 * | drain             | Initiate node drain                                         | pods leave                             |
 * | detach-volumes    | Delete Volume Attachments                                   | after a forced drain only              |
 * | delete-vm         | Initiate VM deletion                                        | the driver deletes the VM              |
 * | delete-node       | Initiate node object deletion                               | the Node object goes                   |
 * | release-finalizer | Initiate machine object finalizer removal                   | the Machine object goes                |
 *
 * v0.61 of the original has one more, `Remove node finalizers`, before it deletes the Node: it is read as `delete-node`, which does both.
 */
export const DELETION_STAGES = [
  'vm-status',
  'drain',
  'detach-volumes',
  'delete-vm',
  'delete-node',
  'release-finalizer',
] as const;

export type DeletionStage = (typeof DELETION_STAGES)[number];

const MARKERS: Record<DeletionStage, string> = {
  'vm-status': 'Set machine status to termination. Now, getting VM Status',
  drain: 'Initiate node drain',
  'detach-volumes': 'Delete Volume Attachments',
  'delete-vm': 'Initiate VM deletion',
  'delete-node': 'Initiate node object deletion',
  'release-finalizer': 'Initiate machine object finalizer removal',
};

/** What is read. */
const TEXTS: readonly (readonly [text: string, stage: DeletionStage])[] = [
  ...DELETION_STAGES.map((stage) => [MARKERS[stage], stage] as const),
  ['Remove node finalizers', 'delete-node'],
];

/**
 * The stage that a Terminating machine is at; undefined when its deletion was not begun (another phase, or a description
 * without marker such as the one that the original's MachineSet controller writes). Of several markers the last one counts,
 * because free text stands in front of the marker.
 */
export function deletionStageOf({ status }: Pick<Machine, 'status'>): DeletionStage | undefined {
  if (status?.currentStatus?.phase !== 'Terminating') return undefined;
  const description = status.lastOperation?.description ?? '';
  let found: { stage: DeletionStage; end: number } | undefined;
  for (const [marker, stage] of TEXTS) {
    const at = description.lastIndexOf(marker);
    const end = at + marker.length;
    if (at >= 0 && (found === undefined || end > found.end)) found = { stage, end };
  }
  return found?.stage;
}

export function hasReached(current: DeletionStage | undefined, stage: DeletionStage): boolean {
  return current !== undefined && DELETION_STAGES.indexOf(current) >= DELETION_STAGES.indexOf(stage);
}

/** A description that leads to `stage`: free text, then the marker. Markers inside the text lose their meaning. */
export function describeStage(stage: DeletionStage, text = ''): string {
  const harmless = withoutMarkers(text);
  return harmless === '' ? MARKERS[stage] : `${harmless} ${MARKERS[stage]}`;
}

/** The free text of a description: everything but the marker. */
export function textOfStage(description: string): string {
  let text = description;
  for (const [marker] of TEXTS) text = text.replaceAll(marker, '');
  return text.trim();
}

/** The original looks for markers by case-sensitive substring: a small first letter is enough to hide one from it. */
function withoutMarkers(text: string): string {
  let harmless = text;
  for (const [marker] of TEXTS) {
    harmless = harmless.replaceAll(marker, marker.charAt(0).toLowerCase() + marker.slice(1));
  }
  return harmless;
}
