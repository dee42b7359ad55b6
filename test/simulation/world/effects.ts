import { hasForceDeletionLabel } from '../../../pkg/apis/machine/v1alpha1/defaults.ts';
import { SELECTED_FOR_UPDATE_LABEL, TRIGGER_DELETION_ANNOTATION } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import { at } from '../api-server/json.ts';
import type { ClusterName, ProcessRequest } from './processes.ts';

/** What becomes of something by a request, as its content says, whatever the program calls it. */
export interface Effect {
  readonly what: string;
  /** Something is lost, or given up, that does not come back; else it is only changed. */
  readonly destroys: boolean;
  /** The clusters that have to be known for it, as they are now. */
  readonly on: readonly ClusterName[];
}

/** What is done to machines, and to what is around them. */
interface Act {
  readonly method: string;
  readonly plural: string;
  readonly name: string;
  readonly subresource: string;
  readonly body: unknown;
  readonly before: unknown;
}

const CONTROL: readonly ClusterName[] = ['control'];
const BOTH: readonly ClusterName[] = ['control', 'target'];
/** What a driver is asked to change. */
const CALLS: ReadonlySet<string> = new Set(['CreateMachine', 'InitializeMachine', 'DeleteMachine']);
const PATH = /^\/apis?(?:\/([\w.-]+))?\/v\w+(?:\/namespaces\/[^/?]+(?=\/))?\/(\w+)(?:\/([^/?]+))?(?:\/(\w+))?(?:\?|$)/;
/** Of the target cluster, also where that is the control cluster. */
const IN_TARGET: ReadonlySet<string> = new Set(['nodes', 'pods', 'volumeattachments']);
const GROUP = 'machine.sapcloud.io';
const REPLICAS = ['spec', 'replicas'];
const PHASE = ['status', 'currentStatus', 'phase'];
const FINALIZERS = ['metadata', 'finalizers'];
const DELETED_AT = ['metadata', 'deletionTimestamp'];
const annotation = (key: string): readonly string[] => ['metadata', 'annotations', key];
const label = (key: string): readonly string[] => ['metadata', 'labels', key];

/**
 * What a request does, of a pool with these Machines; undefined: it asks for nothing, or tells something.
 *
 * | request                                                   | destroys | has to know                                           |
 * |-----------------------------------------------------------|----------|-------------------------------------------------------|
 * | call of a runtime that changes something                  | yes      | Machines                                              |
 * | call of a driver that changes something                   | yes      | Machines and Nodes; only Machines if that is forced   |
 * | DELETE of a Machine                                       | yes      | the same                                              |
 * | DELETE of a MachineSet, fewer replicas of it              | yes      | the same of the Machines that it has                  |
 * | fewer replicas of a MachineDeployment                     | yes      | the same of the Machines that are named to go         |
 * | a Machine becomes Failed                                  | yes      | Machines and Nodes                                    |
 * | a Machine loses a finalizer in its deletion               | yes      | Machines                                              |
 * | DELETE of a Node, pod, attachment or token; an eviction   | yes      | Machines and Nodes                                    |
 * | a Node is to be emptied for an update                     | yes      | Machines and Nodes                                    |
 * | another write to the target: a cordon, a taint, a mark    | no       | Machines and Nodes                                    |
 * | another write to the control cluster: a finalizer, a note | no       | Machines                                              |
 * | a status of what the control cluster has                  | -        | nothing: it may tell of the outage                    |
 */
export function effectOf(
  { to, method, path, body, before }: Pick<ProcessRequest, 'to' | 'method' | 'path' | 'body' | 'before'>,
  machines: readonly Machine[],
): Effect | undefined {
  if (to === '') return { what: method, destroys: true, on: CONTROL };
  if (CALLS.has(method)) {
    const machine = machines.find(({ metadata }) => metadata.name === path);
    const isForced = machine !== undefined && isGoing(machine) && hasForceDeletionLabel(machine);
    return { what: method, destroys: true, on: isForced ? CONTROL : BOTH };
  }
  const [, group, plural, name = '', subresource = ''] = PATH.exec(path) ?? [];
  if (plural === undefined) return undefined;
  const act = { method, plural, name, subresource, body, before };
  if (to !== 'control' || IN_TARGET.has(plural)) return onTarget(act);
  if (subresource === 'status' && group !== GROUP) return undefined;
  return group === GROUP ? onControl(act, machines) : onOther(act);
}

function onControl(
  { method, plural, name, subresource, body, before }: Act,
  machines: readonly Machine[],
): Effect | undefined {
  const has = (path: readonly string[]): unknown => at(before, path);
  const says = (path: readonly string[]): unknown => at(body, path);
  if (plural === 'machines' && subresource === 'status') {
    const isGivenUp = says(PHASE) === 'Failed' && has(PHASE) !== 'Failed';
    return isGivenUp ? { what: `${name} becomes Failed`, destroys: true, on: BOTH } : undefined;
  }
  if (subresource === 'status') return undefined;
  const isDeleted = method === 'DELETE';
  if (plural === 'machines' && isDeleted) {
    const going = machines.filter(({ metadata }) => metadata.name === name);
    return { what: `${name} is deleted`, destroys: true, on: needed(going) };
  }
  const isSmaller = Number(says(REPLICAS)) < Number(has(REPLICAS));
  if (plural === 'machinesets' && (isDeleted || isSmaller)) {
    const uid = has(['metadata', 'uid']);
    const own = machines.filter(
      (machine) => machine.metadata.ownerReferences?.some((owner) => owner.uid === uid) && !isGoing(machine),
    );
    return { what: `${name} ${isDeleted ? 'is deleted' : 'is scaled down'}`, destroys: true, on: needed(own) };
  }
  if (plural === 'machinedeployments' && isSmaller) {
    const listed = annotation(TRIGGER_DELETION_ANNOTATION);
    const [named, known] = [namesIn(says(listed)), namesIn(has(listed))];
    const going = machines.filter(({ metadata }) => named.has(metadata.name) && !known.has(metadata.name));
    return { what: `${name} is scaled down`, destroys: true, on: needed(going) };
  }
  const isReleased = has(DELETED_AT) !== undefined && fewer(says(FINALIZERS), has(FINALIZERS));
  if (plural === 'machines' && isReleased) return { what: `${name} is let go`, destroys: true, on: CONTROL };
  return onOther({ method, plural, name });
}

/** What is about no Node, as far as this can be seen. */
function onOther({ method, plural, name }: Pick<Act, 'method' | 'plural' | 'name'>): Effect {
  return { what: `${plural} ${name} ${method}`, destroys: method === 'DELETE', on: CONTROL };
}

function onTarget({ method, plural, name, subresource, body, before }: Act): Effect {
  const isNew = (path: readonly string[]): boolean =>
    at(body, path) !== undefined && at(body, path) !== null && at(before, path) === undefined;
  const what = `${plural} ${name} ${subresource || method}`;
  const isEmptied = isNew(label(SELECTED_FOR_UPDATE_LABEL));
  return { what, destroys: method === 'DELETE' || subresource === 'eviction' || isEmptied, on: BOTH };
}

/** What has to be known when these Machines go; those that users force wait for no Nodes. */
function needed(going: readonly Machine[]): readonly ClusterName[] {
  return going.every(hasForceDeletionLabel) ? CONTROL : BOTH;
}

function isGoing({ metadata }: Machine): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** Of an autoscaler's list: each stands there with a time. */
function namesIn(list: unknown): ReadonlySet<string | undefined> {
  return new Set(typeof list === 'string' ? list.split(',').map((entry) => entry.split('~')[0]) : []);
}

function fewer(list: unknown, than: unknown): boolean {
  if (list === null) return Array.isArray(than) && than.length > 0;
  return Array.isArray(list) && Array.isArray(than) && than.some((item) => !list.includes(item));
}
