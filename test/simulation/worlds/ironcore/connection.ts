import { ServerError } from 'nice-grpc';

import type { DriverMethod, FaultRule } from '../../../../packages/providers/sim/faults.ts';
import { RuntimeError, runtimeCodeOf, type RuntimeCode } from '../../../../pkg/worlds/ironcore/runtime/error.ts';
import { Power } from '../../../../pkg/worlds/ironcore/runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import type {
  DesiredRuntimeMachine,
  IronCoreRuntime,
  RuntimeCall,
  RuntimeClass,
  RuntimeFilter,
  RuntimeMachine,
  RuntimeVersion,
} from '../../../../pkg/worlds/ironcore/runtime/runtime.ts';
import type { Random } from '../../../../pkg/base/random/random.ts';
import { UID_LABEL } from '../../../../pkg/worlds/ironcore/controllers/machine/keys.ts';
import { runtimeMachine } from '../../../fakes/runtime-machine.ts';
import { LEAVES_OPEN } from '../../world/faults.ts';
import type { MachinesWorld } from '../../world/machines-world.ts';
import type { Caller } from '../../world/processes.ts';
import type { Runtime, RuntimeAct } from './runtime.ts';

/** What a connection is made of. */
export interface ConnectionParts {
  readonly world: MachinesWorld;
  readonly caller: Caller;
  readonly runtime: Runtime;
  readonly random: Random;
  /** Told of each change right after it was made. */
  readonly changed: (act: RuntimeAct) => void;
}

/** Under which names the faults of a driver are those of a runtime; of others only what may happen to any call. */
const AS_DRIVER: Readonly<Record<string, DriverMethod>> = {
  CreateMachine: 'CreateMachine',
  DeleteMachine: 'DeleteMachine',
  ListMachines: 'ListMachines',
};
/** Of what can go wrong with a driver's answers: the others are lies that its contract has no word for. */
const EFFECTS: ReadonlySet<FaultRule['effect']> = new Set([
  'fail',
  'fail-after',
  'hang',
  'late',
  'forget',
  'duplicate',
]);
const READS: ReadonlySet<string> = new Set(['Version', 'Status', 'ListMachines', 'ListEvents']);

interface Call {
  readonly method: string;
  /** UID of the Machine that it is about; empty: of none. */
  readonly uid: string;
  readonly what: string;
}

type NIC = Parameters<IronCoreRuntime['attachNetworkInterface']>[1];
type Disk = Parameters<IronCoreRuntime['attachVolume']>[1];

/** The way of a process to the runtime of a pool, in place of gRPC. */
export class RuntimeConnection implements IronCoreRuntime {
  readonly #parts: ConnectionParts;
  /** How many connections were lost. */
  #losses = 0;
  #version: RuntimeVersion | undefined;
  /** Calls that wait for an answer. */
  readonly #open = new Set<(err: RuntimeError) => void>();

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    parts.runtime.onRestart(() => this.#lose());
  }

  async version(call: RuntimeCall): Promise<RuntimeVersion> {
    if (this.#version !== undefined) return this.#version;
    const name = await this.#call({ method: 'Version', uid: '', what: '' }, call, (runtime) => runtime.name);
    this.#version = { name, version: '1.0.0', connection: this.#losses };
    return this.#version;
  }

  classes(call: RuntimeCall): Promise<readonly RuntimeClass[]> {
    return this.#call({ method: 'Status', uid: '', what: '' }, call, ({ store }) =>
      [...store.quantities].map(([name, quantity]) => ({ name, resources: {}, quantity: Number(quantity) })),
    );
  }

  machines(filter: RuntimeFilter, call: RuntimeCall): Promise<readonly RuntimeMachine[]> {
    return this.#call({ method: 'ListMachines', uid: '', what: '' }, call, (runtime) => runtime.shown(filter));
  }

  events(): Promise<readonly []> {
    return Promise.resolve([]);
  }

  createMachine({ metadata, spec }: DesiredRuntimeMachine, call: RuntimeCall): Promise<string> {
    const uid = metadata.labels[UID_LABEL] ?? '';
    return this.#call({ method: 'CreateMachine', uid, what: '' }, call, (runtime, rule) => {
      const machine = runtime.store.create(structuredClone(runtimeMachine(metadata, spec)));
      runtime.settleLater(machine, 'boot');
      const { id } = machine.metadata;
      this.#changed({ method: 'CreateMachine', uid, what: '' }, id);
      if (rule?.effect === 'duplicate') {
        const other = runtime.store.get(runtime.store.duplicate(id));
        runtime.settleLater(other, 'boot');
        this.#changed({ method: 'duplicate', uid, what: id }, other.metadata.id);
      }
      if (rule?.effect === 'forget') runtime.lose(id);
      return id;
    });
  }

  deleteMachine(id: string, call: RuntimeCall): Promise<void> {
    return this.#change('DeleteMachine', id, '', call, ({ store }) => store.delete(id), 'delete');
  }

  updateMachineAnnotations(id: string, all: Readonly<Record<string, string>>, call: RuntimeCall): Promise<void> {
    return this.#change(
      'UpdateMachineAnnotations',
      id,
      '',
      call,
      ({ store }) => store.annotate(id, { ...all }),
      'attach',
    );
  }

  updateMachinePower(id: string, power: Power, call: RuntimeCall): Promise<void> {
    const what = power === Power.POWER_OFF ? 'Off' : 'On';
    return this.#change('UpdateMachinePower', id, what, call, ({ store }) => store.setPower(id, power), 'attach');
  }

  attachVolume(id: string, volume: Disk, call: RuntimeCall): Promise<void> {
    const attach = ({ store }: Runtime): void => store.attachVolume(id, structuredClone(volume));
    return this.#change('AttachVolume', id, volume.name, call, attach, 'attach');
  }

  updateVolume(id: string, volume: Disk, call: RuntimeCall): Promise<void> {
    const update = ({ store }: Runtime): void => store.updateVolume(id, structuredClone(volume));
    return this.#change('UpdateVolume', id, volume.name, call, update, 'attach');
  }

  detachVolume(id: string, name: string, call: RuntimeCall): Promise<void> {
    const detach = (runtime: Runtime): void => runtime.detach(id, 'volumes', name);
    return this.#change('DetachVolume', id, name, call, detach, 'detach');
  }

  attachNetworkInterface(id: string, nic: NIC, call: RuntimeCall): Promise<void> {
    const attach = ({ store }: Runtime): void => {
      store.attachNetworkInterface(id, structuredClone(nic));
    };
    return this.#change('AttachNetworkInterface', id, nic.name, call, attach, 'attach');
  }

  detachNetworkInterface(id: string, name: string, call: RuntimeCall): Promise<void> {
    const detach = (runtime: Runtime): void => runtime.detach(id, 'networkInterfaces', name);
    return this.#change('DetachNetworkInterface', id, name, call, detach, 'detach');
  }

  close(): void {
    // Nothing holds it open.
  }

  /** A change of a machine that is there; what it begins ends later. */
  #change(
    method: string,
    id: string,
    what: string,
    call: RuntimeCall,
    act: (runtime: Runtime) => void,
    begins: 'attach' | 'detach' | 'delete',
  ): Promise<void> {
    const [known] = this.#parts.runtime.store.list({ id });
    const uid = known?.metadata.labels[UID_LABEL] ?? '';
    return this.#call({ method, uid, what }, call, (runtime) => {
      const machine = runtime.get(id);
      act(runtime);
      runtime.settleLater(machine, begins);
      this.#changed({ method, uid, what }, id);
    });
  }

  #changed({ method, uid, what }: Call, id: string): void {
    const { runtime, caller, changed } = this.#parts;
    changed({ method, runtime, uid, id, what, by: caller.identity });
  }

  /** The connection is lost, as its process hears of it: whatever it waits for has no answer any more. */
  #lose(): void {
    this.#parts.caller.clock.deliver(() => {
      this.#losses += 1;
      this.#version = undefined;
      for (const fail of this.#open)
        fail(new RuntimeError('call', 'Unavailable', 'the connection was lost', { isMutation: true }));
    });
  }

  /** One call: to the runtime and back. It is carried out within its time, or never. */
  #call<T>(of: Call, { signal, timeoutMs }: RuntimeCall, act: (runtime: Runtime, rule?: FaultRule) => T): Promise<T> {
    const { world, caller, runtime, random } = this.#parts;
    const { time, trace } = world;
    const { method, uid } = of;
    const isMutation = !READS.has(method);
    const name = `IRI ${method}`;
    if (caller.clock.isDead) return new Promise(() => undefined);
    if (isMutation) {
      trace.add(`${caller.name} ${name} ${uid} ${of.what}`);
      const { beforeChange } = runtime;
      runtime.beforeChange = undefined;
      beforeChange?.();
    }
    if (!caller.asked(name, `${runtime.pool} ${uid}`, isMutation)) return new Promise(() => undefined);
    const fates = this.#fates(method, uid);
    const sentAtMs = time.elapsedMs;
    return new Promise<T>((resolve, reject) => {
      const fail = (code: RuntimeCode, why: string): void =>
        settle(() => reject(new RuntimeError(method, code, why, { isMutation })));
      const lost = ({ code, detail }: RuntimeError): void => fail(code, detail);
      const onAbort = (): void => fail('Canceled', 'was aborted');
      const cancel = caller.clock.schedule(timeoutMs, () => fail('DeadlineExceeded', 'was not answered within time'));
      let isOver = false;
      const settle = (end: () => void): void => {
        if (isOver) return;
        isOver = true;
        cancel();
        signal.removeEventListener('abort', onAbort);
        this.#open.delete(lost);
        end();
      };
      this.#open.add(lost);
      if (signal.aborted) return onAbort();
      signal.addEventListener('abort', onAbort);
      const answer = (end: () => void, afterMs = this.#latencyMs()): void => {
        time.schedule(afterMs, () => caller.clock.deliver(end));
      };
      const arrive = (): void => {
        const { rule, isLost, isAnswerLost } = fates;
        // Who has asked does not wait any more, or never has: nothing is begun.
        if (isOver || time.elapsedMs - sentAtMs >= timeoutMs || rule?.effect === 'hang') return;
        if (runtime.isDown || isLost) return answer(() => fail('Unavailable', 'the runtime cannot be reached'));
        if (rule?.effect === 'fail') return answer(() => fail(codeOf(rule), 'simulated'));
        let end: () => void;
        try {
          const value = act(runtime, rule);
          end = () => settle(() => resolve(value));
        } catch (err) {
          if (!(err instanceof ServerError)) throw err;
          const { code, details } = err;
          end = () => fail(runtimeCodeOf(code), details);
        }
        if (rule?.effect === 'fail-after') return answer(() => fail(codeOf(rule), 'simulated'));
        if (isAnswerLost) return answer(() => fail('Unavailable', 'the connection was lost'));
        answer(end, rule?.effect === 'late' ? (rule.delayMs ?? 1_000) : this.#latencyMs());
      };
      time.schedule(this.#latencyMs() + (random() < world.weather.rates.slow ? random() * 20_000 : 0), arrive);
    });
  }

  #fates(
    method: string,
    uid: string,
  ): { readonly rule: FaultRule | undefined; readonly isLost: boolean; readonly isAnswerLost: boolean } {
    const { world, random } = this.#parts;
    const { requestLost, answerLost } = world.weather.rates;
    const found = world.simulation.faults.next(AS_DRIVER[method] ?? 'GetVolumeIDs', uid);
    return {
      rule: found !== undefined && EFFECTS.has(found.effect) ? found : undefined,
      isLost: random() < requestLost,
      isAnswerLost: random() < answerLost,
    };
  }

  #latencyMs(): number {
    return 0.5 + this.#parts.random() * 12;
  }
}

/** With these a runtime would say what is not so: that there is nothing like that, that it is so already, or that this cannot be asked for. */
const TELLING: ReadonlySet<string> = new Set(['OK', 'Uninitialized', 'NotFound', 'AlreadyExists', 'Unimplemented']);

function codeOf({ code = 'Internal', effect }: FaultRule): RuntimeCode {
  const isOfGRPC = (drawn: string): drawn is RuntimeCode => !TELLING.has(drawn);
  // Those of gRPC say that an aborted call has done nothing.
  const isTrue = effect !== 'fail-after' || (LEAVES_OPEN.has(code) && code !== 'Aborted');
  return isTrue && isOfGRPC(code) ? code : 'Unknown';
}
