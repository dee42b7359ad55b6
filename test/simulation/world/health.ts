import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../pkg/apis/wire.ts';
import type { MachinesWorld } from './machines-world.ts';

/** Health timeout of the Machines of worlds, less what a look may take. */
export const HEALTH_TIMEOUT_MS = 290_000;
/** So long a machine works again before nobody may take it for one that does not: a look may have been made before. */
const RECOVERED_MS = 90_000;

/** Knows which machines work, whatever their Machines say. */
export class Health {
  readonly #world: MachinesWorld;
  /** When Machines joined, by UID. */
  readonly #joined = new Map<string, number>();
  /** Since when a Node is ready, or is not, by name. */
  readonly #since = new Map<string, { readonly isReady: boolean; readonly atMs: number }>();

  constructor(world: MachinesWorld) {
    this.#world = world;
    const { control, target } = world.servers;
    control.objects.onChange(({ plural }, { object }) => {
      const { metadata, status } = object as unknown as Machine;
      if (plural !== 'machines' || status?.currentStatus?.phase !== 'Running' || this.#joined.has(metadata.uid)) return;
      this.#joined.set(metadata.uid, world.time.elapsedMs);
    });
    target.objects.onChange(({ plural }, { type, object }) => {
      if (plural !== 'nodes') return;
      if (!world.isOwn(object)) return;
      const { name } = object.metadata;
      const isReady = type !== 'DELETED' && isReadyNode(object);
      if (this.#since.get(name)?.isReady !== isReady) this.#since.set(name, { isReady, atMs: world.time.elapsedMs });
    });
  }

  /** Whether its Node has been ready for a while. */
  isReady({ metadata }: Machine): boolean {
    return this.isNodeReady(metadata.labels?.['node'] ?? '');
  }

  /** The same of a Node. */
  isNodeReady(name: string): boolean {
    const since = this.#since.get(name);
    return since?.isReady === true && this.#world.time.elapsedMs - since.atMs > RECOVERED_MS;
  }

  hasJoined(machine: Machine): boolean {
    return this.joinedMs(machine) !== undefined;
  }

  /** When it joined; undefined: it has not. */
  joinedMs({ metadata: { uid } }: Machine): number | undefined {
    return this.#joined.get(uid);
  }

  /** Whether a machine works, or has not failed to for so long that it may be replaced. */
  isHealthy({ metadata, spec, status }: Machine): boolean {
    const { cloud, nodes, time } = this.#world;
    if (cloud.get(spec?.providerID ?? '')?.power !== 'on' || !this.#joined.has(metadata.uid)) return false;
    const name = metadata.labels?.['node'] ?? '';
    const since = this.#since.get(name);
    if (since === undefined || !nodes.some((node) => node.metadata.name === name)) return false;
    const ms = time.elapsedMs - since.atMs;
    if (!since.isReady) return ms < HEALTH_TIMEOUT_MS;
    return status?.currentStatus?.phase === 'Running' || ms > RECOVERED_MS;
  }
}

export function isReadyNode(node: object): boolean {
  const { status } = node as Node;
  return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
}
