import { RuntimeError } from '../../runtime/error.ts';
import type { PoolRuntime } from '../../runtime/gated-runtime.ts';
import type { Event } from '../../runtime/gen/ironcore/event/v1alpha1/event.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import { UID_LABEL } from './keys.ts';
import type { IronCoreCollaborators } from '../collaborators.ts';
import { cachedMachineOf } from './owner-of.ts';

type Deps = Pick<IronCoreCollaborators, 'machines' | 'recorder' | 'clock'>;

const PERIOD_MS = 10_000;
/** Events that are remembered as told; what is older is not asked for any more. */
const MAX_REPORTED = 10_000;

/** Tells the events of runtimes about machines as Events of their Machines, each once. */
export class RuntimeEvents {
  readonly #deps: Deps;
  /** By pool, when its runtime was asked for its events, and until when it has told them. */
  readonly #asked = new Map<string, { readonly askedAtMs: number; readonly reportedAtMs: number | undefined }>();
  readonly #reported = new Set<string>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Asks the runtime of a pool, if it is time. */
  async report(
    pool: string,
    runtime: PoolRuntime,
    machines: readonly RuntimeMachine[],
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#deps;
    const nowMs = clock.monotonicMs();
    const { askedAtMs, reportedAtMs } = this.#asked.get(pool) ?? { askedAtMs: -Infinity, reportedAtMs: undefined };
    if (nowMs - askedAtMs < PERIOD_MS) return;
    this.#asked.set(pool, { askedAtMs: nowMs, reportedAtMs });
    const sinceMs = clock.now() - (reportedAtMs === undefined ? 0 : nowMs - reportedAtMs);
    const events = await runtime.events(sinceMs, signal).catch((err: unknown) => {
      if (!(err instanceof RuntimeError) || signal.aborted) throw err;
      // Not every runtime has them; and one that cannot tell them must not keep its machines from being looked at.
      return RuntimeError.hasCode(err, 'Unimplemented') ? [] : undefined;
    });
    if (events === undefined) return;
    this.#asked.set(pool, { askedAtMs: nowMs, reportedAtMs: nowMs });
    for (const event of events) this.#report(event, machines);
  }

  /** Once: what was told is asked for again, because clocks differ. */
  #report({ spec }: Event, machines: readonly RuntimeMachine[]): void {
    const { id = '', labels = {} } = spec?.involvedObjectMeta ?? {};
    const about = machines.find(({ metadata }) =>
      id === '' ? metadata.labels[UID_LABEL] === labels[UID_LABEL] : metadata.id === id,
    );
    if (spec === undefined || about === undefined) return;
    const object = cachedMachineOf(this.#deps.machines, about);
    if (object === undefined) return;
    const key = JSON.stringify([about.metadata.id, spec.type, spec.reason, spec.message, String(spec.eventTime)]);
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    for (const old of this.#reported) {
      if (this.#reported.size <= MAX_REPORTED) break;
      this.#reported.delete(old);
    }
    const type = spec.type === 'Warning' ? 'Warning' : 'Normal';
    this.#deps.recorder.event({
      object,
      type,
      reason: spec.reason === '' ? 'RuntimeEvent' : spec.reason,
      message: spec.message,
    });
  }
}
