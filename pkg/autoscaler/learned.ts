import { LEARNED_NODE_ANNOTATION } from '../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import type { ClassNodeTemplate, MachineClass } from '../apis/machine/v1alpha1/machine-class.ts';
import { isBeingDeleted, keyOf } from '../apis/meta.ts';
import { isQuantity, quantitiesEqual } from '../apis/quantity.ts';
import type { Node } from '../apis/wire.ts';
import { fromTimestamp, toTimestamp } from '../base/clock/clock.ts';
import { isReady } from '../controllers/machine-facts/node-health.ts';
import { CLASS_GPU, INSTANCE_TYPE_LABEL, isShared, type LearnedShape } from './template.ts';

interface Stored extends LearnedShape {
  readonly revision: string;
  /** When the Machine was created that it was learned from: what is older may be of a version before. */
  readonly created: string;
}

interface Memory {
  readonly revision: string;
  /** The Machine that it was learned from, but for labels that others have beside. */
  readonly machineName: string;
  readonly createdMs: number;
  readonly shape: LearnedShape;
}

/**
 * What Nodes of each MachineClass were seen to have: that of the newest ready one, with the labels that only others have had, because a Node is ready
 * before its CSI drivers label it. It outlives the Nodes, and not a change of the class, after which only Nodes of Machines count that are
 * certain to have been made of it as it is now.
 */
export class LearnedShapes {
  readonly #memories = new Map<string, Memory>();
  /** By class. */
  readonly #firstSights = new Map<string, { readonly revision: string; readonly atMs: number }>();

  see({ metadata: { name, creationTimestamp } }: Machine, node: Node, machineClass: MachineClass): void {
    const createdMs = fromTimestamp(creationTimestamp) ?? 0;
    const stored = storedIn(machineClass);
    if (isBeingDeleted(node) || !isReady(node) || !this.#isOfThisVersion(createdMs, machineClass, stored)) return;
    const shape = shapeOf(node, machineClass);
    if (shape === undefined) return;
    const known = this.#remembered(machineClass);
    const seen: Memory = { revision: revisionOf(machineClass), machineName: name, createdMs, shape };
    const [latest, other] = known !== undefined && isLater(known, seen) ? [known, seen] : [seen, known];
    const labels = withLabels(withLabels(latest.shape.labels, other?.shape.labels), stored?.labels);
    this.#memories.set(keyOf(machineClass), { ...latest, shape: { ...latest.shape, labels } });
  }

  /** A class was added, changed or deleted: what was known of another version of it is so no more. */
  changed(old: MachineClass | undefined, current: MachineClass | undefined, nowMs: number): void {
    if (old !== undefined && current !== undefined && revisionOf(old) === revisionOf(current)) return;
    if (old !== undefined) this.#memories.delete(keyOf(old));
    if (current !== undefined) this.#firstSights.set(keyOf(current), { revision: revisionOf(current), atMs: nowMs });
    else if (old !== undefined) this.#firstSights.delete(keyOf(old));
  }

  /** What is remembered, or else what a process before stored. */
  of(machineClass: MachineClass): LearnedShape | undefined {
    const known = this.#remembered(machineClass)?.shape ?? storedIn(machineClass);
    return known && { capacity: known.capacity, allocatable: known.allocatable, labels: known.labels };
  }

  /**
   * The annotation that the class should get; undefined when nothing is remembered, or it has one of this version that lacks no label: Nodes
   * differ a little, and are many.
   */
  toStore(machineClass: MachineClass): string | undefined {
    const known = this.#remembered(machineClass);
    if (known === undefined) return undefined;
    const stored = storedIn(machineClass);
    if (stored !== undefined && Object.keys(known.shape.labels).every((key) => key in stored.labels)) return undefined;
    const { revision, createdMs, shape } = known;
    return JSON.stringify({ revision, created: toTimestamp(createdMs), ...shape } satisfies Stored);
  }

  /**
   * Whether a Machine of this age was made of the class as it is now. The API server does not tell when a class was changed: only that
   * nobody has changed one of generation 1, which what was stored is of, and what this process has seen itself.
   */
  #isOfThisVersion(createdMs: number, machineClass: MachineClass, stored: Stored | undefined): boolean {
    const { generation, creationTimestamp } = machineClass.metadata;
    const storedMs = fromTimestamp(stored?.created);
    if (storedMs !== undefined) return createdMs >= storedMs;
    if (generation === 1) return createdMs >= (fromTimestamp(creationTimestamp) ?? -Infinity);
    const sight = this.#firstSights.get(keyOf(machineClass));
    return sight?.revision === revisionOf(machineClass) && createdMs > sight.atMs;
  }

  #remembered(machineClass: MachineClass): Memory | undefined {
    const known = this.#memories.get(keyOf(machineClass));
    return known?.revision === revisionOf(machineClass) ? known : undefined;
  }
}

/** Of Machines that were created in the same second one counts all the time, or what is learned would change with each of their heartbeats. */
function isLater(one: Memory, other: Memory): boolean {
  if (one.createdMs !== other.createdMs) return one.createdMs > other.createdMs;
  return one.machineName < other.machineName;
}

/** With those of another Node that are missing, unless that one is elsewhere, or of another kind. */
function withLabels(
  labels: LearnedShape['labels'],
  others: LearnedShape['labels'] | undefined = {},
): LearnedShape['labels'] {
  const isDifferent = Object.entries(others).some(([key, value]) => (labels[key] ?? value) !== value);
  return isDifferent ? labels : { ...others, ...labels };
}

/** Nothing of another version of the class, and nothing that nobody can read. */
function storedIn(machineClass: MachineClass): Stored | undefined {
  const text = machineClass.metadata.annotations?.[LEARNED_NODE_ANNOTATION];
  if (text === undefined) return undefined;
  try {
    const { revision, created, capacity, allocatable, labels } = JSON.parse(text) as Partial<Stored>;
    if (revision !== revisionOf(machineClass) || typeof created !== 'string') return undefined;
    if (!isTexts(capacity) || !isTexts(allocatable) || !isTexts(labels)) return undefined;
    return { revision, created, capacity, allocatable, labels };
  } catch {
    return undefined;
  }
}

function isTexts(value: unknown): value is Readonly<Record<string, string>> {
  return typeof value === 'object' && value !== null && Object.values(value).every((text) => typeof text === 'string');
}

/** What changes with what a class says, and not with its metadata. */
function revisionOf({ metadata }: MachineClass): string {
  return `${metadata.uid}/${metadata.generation ?? 0}`;
}

/**
 * Nothing when the Node says too little, or is of another instance type than the class asks for now. A Node is ready before its device
 * plugins are, and after a restart of its kubelet shows none of their devices: without those that the class says it has, pods that
 * want one would wait for ever.
 */
function shapeOf({ metadata, status }: Node, { nodeTemplate }: MachineClass): LearnedShape | undefined {
  const { capacity, allocatable } = status ?? {};
  if (capacity === undefined || allocatable?.['cpu'] === undefined || allocatable['memory'] === undefined)
    return undefined;
  if (lacksDevices(allocatable, nodeTemplate)) return undefined;
  const labels = Object.entries(metadata.labels ?? {}).filter(([key]) => isShared(key));
  const instanceType = metadata.labels?.[INSTANCE_TYPE_LABEL];
  const wanted = nodeTemplate?.instanceType || undefined;
  if (instanceType !== undefined && wanted !== undefined && instanceType !== wanted) return undefined;
  return { capacity, allocatable, labels: Object.fromEntries(labels) };
}

/** Which resource the GPUs of a class are depends on their plugin. */
function lacksDevices(allocatable: Readonly<Record<string, string>>, ofClass: ClassNodeTemplate | undefined): boolean {
  const devices = new Set(Object.keys(allocatable).filter((key) => isDevice(key) && isSome(allocatable[key])));
  const wanted = Object.entries({ ...ofClass?.capacity, ...ofClass?.virtualCapacity })
    .filter(([, quantity]) => isSome(quantity))
    .map(([key]) => key);
  return wanted.some((key) => (key === CLASS_GPU ? devices.size === 0 : isDevice(key) && !devices.has(key)));
}

/** Whether a resource is one that others than the kubelet tell of. */
function isDevice(key: string): boolean {
  return key.includes('/');
}

function isSome(quantity: string | number = 0): boolean {
  return isQuantity(quantity) && !quantitiesEqual(quantity, 0);
}
