import {
  DELETION_POLICY_ANNOTATION,
  DELETION_PREPARATION_SINCE_ANNOTATION,
  MAINTENANCE_ANNOTATION,
  PREPARE_DELETION_ANNOTATION,
  PRESERVE_ANNOTATION,
} from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import { fromTimestamp } from '../../../pkg/base/clock/clock.ts';
import type { MachinesWorld } from './machines-world.ts';

/** For so long a manager may not have seen what a user has said: a watch may be silent. */
const UNSEEN_MS = 90_000;
/** By which pods are not waited for. */
const WEAK: ReadonlySet<string> = new Set(['unsafe', 'forced']);

/** What a user wants, and since when. */
interface Wish {
  readonly value: string;
  readonly sinceMs: number;
}

/** Knows what users want of single Machines by annotations, and for how long. */
export class Wishes {
  readonly #world: MachinesWorld;
  /** By what it is about, and the name of the Machine. */
  readonly #wishes = new Map<string, Wish>();
  /** When a Machine was last to go without a drain, by name. */
  readonly #weakMs = new Map<string, number>();

  constructor(world: MachinesWorld) {
    this.#world = world;
    const { control, target } = world.servers;
    control.objects.onChange(({ plural }, { object }) => {
      if (object.metadata.namespace !== world.namespace) return;
      if (plural === 'machines' || plural === 'machinedeployments') this.#note();
    });
    target.objects.onChange(({ plural }) => {
      if (plural === 'nodes') this.#note();
    });
    control.objects.onRestore(() => this.#note());
  }

  /** Whether a Machine is preserved, and a user has wanted it for a while. */
  isPreserved({ metadata, status }: Machine): boolean {
    const { phase, preserveExpiryTime } = status?.currentStatus ?? {};
    const value = this.#seen('preserve', metadata.name);
    const isWanted = value === 'now' || (value === 'when-failed' && phase === 'Failed');
    return isWanted && (fromTimestamp(preserveExpiryTime) ?? 0) > this.#world.time.epochMs;
  }

  /** Whether a user has wanted a Machine in maintenance for a while. */
  isMaintained({ metadata: { name } }: Machine): boolean {
    return this.#seen('maintain', name) === 'true';
  }

  /** Whether all machines of another template have had to go before new ones come, for a while. */
  get isRecreated(): boolean {
    return this.#seen('strategy', '') === 'Recreate';
  }

  /** Whether a deletion that began then may leave pods where they are. */
  isWeak({ metadata: { name } }: Machine, beganMs: number): boolean {
    return (this.#weakMs.get(name) ?? -Infinity) > beganMs - UNSEEN_MS;
  }

  /** Whether a deletion that began then has always had to wait for pods. */
  isGraceful({ metadata: { name } }: Machine, beganMs: number): boolean {
    const { value, sinceMs = Infinity } = this.#wishes.get(`policy ${name}`) ?? {};
    return value === 'graceful' && sinceMs < beganMs - UNSEEN_MS;
  }

  #seen(about: string, name: string): string | undefined {
    const { value, sinceMs = Infinity } = this.#wishes.get(`${about} ${name}`) ?? {};
    return this.#world.time.epochMs - sinceMs > UNSEEN_MS ? value : undefined;
  }

  #note(): void {
    const { machines, nodes, pool } = this.#world;
    const inherited = pool?.metadata.annotations?.[DELETION_POLICY_ANNOTATION];
    this.#set('strategy', '', pool?.spec?.strategy?.type ?? '');
    const byName = new Map(nodes.map((node) => [node.metadata.name, node.metadata.annotations]));
    for (const { metadata } of machines) {
      const { name, annotations = {}, labels } = metadata;
      const ofNode = byName.get(labels?.['node'] ?? '') ?? {};
      const isMaintained = [annotations, ofNode].some((of) => of[MAINTENANCE_ANNOTATION] === 'true');
      this.#set('maintain', name, String(isMaintained));
      this.#set('preserve', name, ofNode[PRESERVE_ANNOTATION] ?? annotations[PRESERVE_ANNOTATION] ?? '');
      const policy = annotations[DELETION_POLICY_ANNOTATION] ?? inherited ?? '';
      this.#set('policy', name, policy);
      if (WEAK.has(policy)) this.#weakMs.set(name, Infinity);
      else if (this.#weakMs.get(name) === Infinity) this.#weakMs.set(name, this.#world.time.epochMs);
    }
  }

  #set(about: string, name: string, value: string): void {
    const key = `${about} ${name}`;
    if (this.#wishes.get(key)?.value !== value) this.#wishes.set(key, { value, sinceMs: this.#world.time.epochMs });
  }
}

/** Whether a user wants a Machine to be drained, and then deleted. */
export function isPrepared({ metadata }: Pick<Machine, 'metadata'>): boolean {
  return metadata.annotations?.[PREPARE_DELETION_ANNOTATION] === 'true';
}

/** Since when that has been under way, in ms since the epoch. */
export function preparedSinceMs({ metadata }: Pick<Machine, 'metadata'>): number | undefined {
  return fromTimestamp(metadata.annotations?.[DELETION_PREPARATION_SINCE_ANNOTATION]);
}
