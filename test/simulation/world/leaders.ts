import type { Lease } from '../../../pkg/apis/wire.ts';
import { type MachinesWorld, NAMESPACE } from './machines-world.ts';

interface Holder {
  readonly identity: string;
  readonly sinceMs: number;
  /** When it has renewed its Lease last, by the time of the world, and by its own. */
  readonly renewedMs: number;
  readonly renewTime: string | undefined;
  /** For how long others then leave it alone. */
  readonly durationMs: number;
}

/** Times in Leases are those of clocks that are read before a request is sent. */
const SLACK_MS = 100;

/** Who holds the Leases of a world, or the one under which a cell is managed. */
export class Leaders {
  readonly #holders = new Map<string, Holder>();
  /** How many Leases there are at least before one knows who leads. */
  readonly #least: number;

  /** `find` is told when a Lease is taken from a process that had not lost it. */
  constructor(world: MachinesWorld, find: (what: string) => void) {
    this.#least = world.lease === undefined ? 2 : 1;
    world.servers.control.objects.onChange(({ plural }, { object }) => {
      // Those of other namespaces are no Leases to lead by.
      if (plural !== 'leases' || object.metadata.namespace !== NAMESPACE) return;
      const { name } = object.metadata;
      if (world.lease !== undefined && name !== world.lease) return;
      const nowMs = world.time.elapsedMs;
      const spec = (object as unknown as Lease).spec ?? {};
      const { holderIdentity: identity = '', leaseDurationSeconds = 0, renewTime } = spec;
      const durationMs = leaseDurationSeconds * 1_000;
      const before = this.#holders.get(name);
      const isSame = before?.identity === identity;
      // What others note at a Lease renews nothing: who waits for it does not wait for longer because of that.
      if (isSame && before.renewTime === renewTime) return;
      if (before !== undefined && !isSame && before.identity !== '' && identity !== '') {
        const leftMs = before.renewedMs + before.durationMs - nowMs;
        if (leftMs > SLACK_MS) {
          find(`${identity} took Lease ${name} of ${before.identity}, which held it for ${Math.round(leftMs)} ms more`);
        }
      }
      this.#holders.set(name, {
        identity,
        sinceMs: isSame ? before.sinceMs : nowMs,
        renewedMs: nowMs,
        renewTime,
        durationMs,
      });
    });
    world.servers.control.objects.onRestore(() => this.#holders.clear());
  }

  /** Whether somebody else holds a Lease at the moment. */
  isHeldByAnother(lease: string, identity: string): boolean {
    const { identity: holder = '' } = this.#holders.get(lease) ?? {};
    return holder !== '' && holder !== identity;
  }

  /** Whether others had taken all Leases when a process sent something. */
  hadLost(identity: string, sentAtMs: number): boolean {
    const holders = [...this.#holders.values()];
    return (
      holders.length >= this.#least &&
      holders.every((holder) => holder.identity !== '' && holder.identity !== identity && holder.sinceMs < sentAtMs)
    );
  }
}
