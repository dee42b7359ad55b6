import { ClientError, Metadata, createClient, type CallOptions, type Client } from 'nice-grpc';

import type { Clock } from '../../../base/clock/clock.ts';
import { messageOf } from '../../../driver/errno.ts';
import type { DriverAddress } from '../../../driver/grpc/address.ts';
import { DriverConnection } from '../../../driver/grpc/connection.ts';
import { toGrpcTimeout } from '../../../driver/grpc/grpc-timeout.ts';
import { statusText } from '../../../driver/grpc/transport-error.ts';
import { withoutSecrets } from '../../../driver/without-secrets.ts';
import type { Logger } from '../../../base/log/logger.ts';
import { classesFrom, eventsFrom, idFrom, machinesFrom, UnusableAnswerError, versionFrom } from './answers.ts';
import { runtimeCodeOf, RuntimeError, type RuntimeCode } from './error.ts';
import type { Event } from './gen/ironcore/event/v1alpha1/event.ts';
import {
  MachineRuntimeDefinition,
  type ListMachinesResponse,
  type Machine,
  type NetworkInterface,
  type Power,
  type Volume,
} from './gen/ironcore/machine/v1alpha1/machine.ts';
import type {
  IronCoreRuntime,
  RuntimeCall,
  RuntimeClass,
  RuntimeFilter,
  RuntimeMachine,
  RuntimeVersion,
  DesiredRuntimeMachine,
} from './runtime.ts';

/** The version of IRI that is spoken. */
const VERSION = 'v1alpha1';
/** Clocks of runtimes may be behind, and their times are whole seconds. */
const EVENT_OVERLAP_MS = 60_000;

export interface RuntimeClientDeps {
  readonly address: DriverAddress;
  readonly clock: Clock;
  readonly log: Logger;
  /** Told of each call when it has ended. */
  readonly observe?: (call: EndedCall) => void;
}

export interface EndedCall {
  readonly method: string;
  readonly code: 'OK' | RuntimeCode;
  readonly ms: number;
}

/** What is said to the runtime that must not come back in an error. */
type Secrets = readonly Readonly<Record<string, Uint8Array>>[];

/** A runtime of IronCore in another process, over IRI. Connects when first used and again after each loss. Safe for any number of calls at once. */
export class RuntimeClient implements IronCoreRuntime {
  readonly #clock: Clock;
  readonly #observe: (call: EndedCall) => void;
  readonly #connection: DriverConnection;
  readonly #client: Client<MachineRuntimeDefinition>;
  /** Of the present connection; undefined until it is known. */
  #version: RuntimeVersion | undefined;
  #losses = 0;

  constructor({ address, clock, log, observe = () => undefined }: RuntimeClientDeps) {
    this.#clock = clock;
    this.#observe = observe;
    this.#connection = new DriverConnection(address, log.child({ runtime: address.target }), () => {
      this.#version = undefined;
      this.#losses += 1;
    });
    this.#client = createClient(MachineRuntimeDefinition, this.#connection.channel);
  }

  async version(call: RuntimeCall): Promise<RuntimeVersion> {
    if (this.#version !== undefined) return this.#version;
    const said = await this.#read('Version', call, versionFrom, (o) => this.#client.version({ version: VERSION }, o));
    const version = { ...said, connection: this.#losses };
    this.#version = version;
    this.#connection.watch();
    return version;
  }

  async classes(call: RuntimeCall): Promise<readonly RuntimeClass[]> {
    return await this.#read('Status', call, classesFrom, (o) => this.#client.status({}, o));
  }

  async machines(filter: RuntimeFilter, call: RuntimeCall): Promise<readonly RuntimeMachine[]> {
    const { id = '', labels = {} } = filter;
    return await this.#read(
      'ListMachines',
      call,
      (answer: ListMachinesResponse) => machinesFrom(answer, filter),
      (o) => this.#client.listMachines({ filter: { id, labelSelector: { ...labels } } }, o),
    );
  }

  async events(sinceMs: number, call: RuntimeCall): Promise<readonly Event[]> {
    const eventsFromTime = BigInt(Math.max(0, Math.floor((sinceMs - EVENT_OVERLAP_MS) / 1_000)));
    const filter = { id: '', labelSelector: {}, eventsFromTime, eventsToTime: 0n };
    return await this.#read('ListEvents', call, eventsFrom, (o) => this.#client.listEvents({ filter }, o));
  }

  async createMachine({ metadata, spec }: DesiredRuntimeMachine, call: RuntimeCall): Promise<string> {
    const ofRuntime = { id: '', generation: 0n, createdAt: 0n, deletedAt: 0n };
    const machine: Machine = { metadata: { ...metadata, ...ofRuntime }, spec, status: undefined };
    const secrets = [{ ignition: spec.ignitionData }, ...spec.volumes.flatMap(secretsOf)];
    const send = (o: CallOptions) => this.#client.createMachine({ machine }, o);
    return await this.#mutate('CreateMachine', call, idFrom, send, secrets);
  }

  async deleteMachine(machineId: string, call: RuntimeCall): Promise<void> {
    await this.#mutate('DeleteMachine', call, nothing, (o) => this.#client.deleteMachine({ machineId }, o));
  }

  async updateMachineAnnotations(
    machineId: string,
    annotations: Readonly<Record<string, string>>,
    call: RuntimeCall,
  ): Promise<void> {
    const request = { machineId, annotations: { ...annotations } };
    await this.#mutate('UpdateMachineAnnotations', call, nothing, (o) =>
      this.#client.updateMachineAnnotations(request, o),
    );
  }

  async updateMachinePower(machineId: string, power: Power, call: RuntimeCall): Promise<void> {
    await this.#mutate('UpdateMachinePower', call, nothing, (o) =>
      this.#client.updateMachinePower({ machineId, power }, o),
    );
  }

  async attachVolume(machineId: string, volume: Volume, call: RuntimeCall): Promise<void> {
    const send = (o: CallOptions) => this.#client.attachVolume({ machineId, volume }, o);
    await this.#mutate('AttachVolume', call, nothing, send, secretsOf(volume));
  }

  async updateVolume(machineId: string, volume: Volume, call: RuntimeCall): Promise<void> {
    const send = (o: CallOptions) => this.#client.updateVolume({ machineId, volume }, o);
    await this.#mutate('UpdateVolume', call, nothing, send, secretsOf(volume));
  }

  async detachVolume(machineId: string, name: string, call: RuntimeCall): Promise<void> {
    await this.#mutate('DetachVolume', call, nothing, (o) => this.#client.detachVolume({ machineId, name }, o));
  }

  async attachNetworkInterface(
    machineId: string,
    networkInterface: NetworkInterface,
    call: RuntimeCall,
  ): Promise<void> {
    await this.#mutate('AttachNetworkInterface', call, nothing, (o) =>
      this.#client.attachNetworkInterface({ machineId, networkInterface }, o),
    );
  }

  async detachNetworkInterface(machineId: string, name: string, call: RuntimeCall): Promise<void> {
    await this.#mutate('DetachNetworkInterface', call, nothing, (o) =>
      this.#client.detachNetworkInterface({ machineId, name }, o),
    );
  }

  close(): void {
    this.#connection.close();
  }

  async #read<A, R>(
    method: string,
    call: RuntimeCall,
    use: (answer: A) => R,
    send: (options: CallOptions) => Promise<A>,
  ): Promise<R> {
    return await this.#call({ method, isMutation: false, ...call, secrets: [] }, use, send);
  }

  async #mutate<A, R>(
    method: string,
    call: RuntimeCall,
    use: (answer: A) => R,
    send: (options: CallOptions) => Promise<A>,
    secrets: Secrets = [],
  ): Promise<R> {
    return await this.#call({ method, isMutation: true, ...call, secrets }, use, send);
  }

  async #call<A, R>(of: CallInProgress, use: (answer: A) => R, send: (options: CallOptions) => Promise<A>): Promise<R> {
    const { timeoutMs, signal } = of;
    const deadline = new AbortController();
    const cancel = this.#clock.schedule(timeoutMs, () => deadline.abort());
    const startedMs = this.#clock.monotonicMs();
    let code: EndedCall['code'] = 'OK';
    try {
      const metadata = Metadata({ 'grpc-timeout': toGrpcTimeout(timeoutMs) });
      return use(await send({ metadata, signal: AbortSignal.any([signal, deadline.signal]) }));
    } catch (err) {
      const failure = failureOf(err, of, deadline.signal.aborted);
      ({ code } = failure);
      throw failure;
    } finally {
      cancel();
      this.#observe({ method: of.method, code, ms: this.#clock.monotonicMs() - startedMs });
    }
  }
}

interface CallInProgress extends RuntimeCall {
  readonly method: string;
  readonly isMutation: boolean;
  readonly secrets: Secrets;
}

/** Why a call failed. A status is believed, unlike that of a driver: IRI has nothing else to say it with. */
function failureOf(
  err: unknown,
  { method, isMutation, signal, timeoutMs, secrets }: CallInProgress,
  timedOut: boolean,
): RuntimeError {
  const options = { isMutation };
  if (signal.aborted) return new RuntimeError(method, 'Canceled', `was aborted: ${messageOf(signal.reason)}`, options);
  if (timedOut) {
    // A change has as long as leadership lasts, which is another time each time: what is the same trouble is told in the same words.
    const within = isMutation ? 'time' : `${timeoutMs} ms`;
    return new RuntimeError(method, 'DeadlineExceeded', `was not answered within ${within}`, options);
  }
  // One after the other: the Secrets of volumes have the same members.
  const hide = (text: string): string => secrets.reduce(withoutSecrets, text);
  if (err instanceof UnusableAnswerError) {
    return new RuntimeError(method, 'Internal', `the response is not valid: ${hide(err.message)}`, options);
  }
  // Not as a cause: whoever answers may quote what it was sent, and causes are logged.
  if (!(err instanceof ClientError)) return new RuntimeError(method, 'Unavailable', hide(messageOf(err)), options);
  const code = runtimeCodeOf(err.code);
  if (code === 'Unimplemented') {
    const why = `the runtime does not implement it: it has another version, or is not an IronCore runtime (${hide(err.details)})`;
    return new RuntimeError(method, code, why, options);
  }
  // Those that begin with the name of the status are told why there is no connection.
  const text = statusText(err);
  const why = code === 'Unavailable' ? text.replace(/^UNAVAILABLE: /, '') : err.details;
  return new RuntimeError(method, code, hide(why === '' ? text : why), options);
}

function secretsOf({ connection }: Volume): Secrets {
  return [connection?.secretData ?? {}, connection?.encryptionData ?? {}];
}

function nothing(): void {
  // An answer without a member says that it is done.
}
