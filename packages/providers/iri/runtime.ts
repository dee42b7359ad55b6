import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import {
  createServer,
  ServerError,
  Status,
  type CallContext,
  type CompatServiceDefinition,
  type Server,
  type ServiceImplementation,
} from 'nice-grpc';

import type { Event } from '../../../pkg/worlds/ironcore/runtime/gen/ironcore/event/v1alpha1/event.ts';
import { MachineRuntimeDefinition } from '../../../pkg/worlds/ironcore/runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import { MachineStore } from './store.ts';

/** Name of a method of IRI, as on the wire. */
export type RuntimeMethod =
  (typeof MachineRuntimeDefinition.methods)[keyof typeof MachineRuntimeDefinition.methods]['name'];

/**
 * What goes wrong with calls of a method: `refuse` answers with a status, `hang` does nothing and never answers, `lose` does it and never
 * answers, `drop` does it and answers that it cannot be reached, `garbage` does it and answers with these bytes.
 */
export type Fault =
  | { readonly kind: 'refuse'; readonly status: Status; readonly details?: string }
  | { readonly kind: 'hang' | 'lose' | 'drop' }
  | { readonly kind: 'garbage'; readonly bytes: Uint8Array };

export interface ReceivedCall {
  readonly method: RuntimeMethod;
  readonly request: unknown;
}

export interface IriRuntimeOptions {
  /** Room for machines by class. */
  readonly classes?: Readonly<Record<string, number>>;
  /** What a machine of any class has; not said, unless it is given. */
  readonly capabilities?: Readonly<Record<string, bigint>>;
  readonly name?: string;
  readonly version?: string;
  /** Path of its socket; one in a folder of its own, unless told otherwise. */
  readonly socket?: string;
}

type Handler = (request: unknown, context: CallContext) => Promise<unknown>;

const READS: ReadonlySet<RuntimeMethod> = new Set(['Version', 'ListMachines', 'ListEvents', 'Status', 'Exec']);

/** An answer that is no message: its bytes are sent as they are. */
class Raw {
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }
}

/** The service, with answers that may be raw. */
const SERVICE: CompatServiceDefinition = Object.fromEntries(
  Object.entries(MachineRuntimeDefinition.methods).map(([key, method]) => {
    // Each codec is only ever given messages of its own kind.
    const { name, requestType, responseType } = method as unknown as Codecs;
    const definition = {
      path: `/${MachineRuntimeDefinition.fullName}/${name}`,
      requestStream: false,
      responseStream: false,
      requestDeserialize: (bytes: Uint8Array) => requestType.decode(bytes),
      requestSerialize: (request: unknown) => requestType.encode(request).finish(),
      responseDeserialize: (bytes: Uint8Array) => responseType.decode(bytes),
      responseSerialize: (answer: unknown) =>
        answer instanceof Raw ? answer.bytes : responseType.encode(answer).finish(),
      options: {},
    } as const;
    return [key, definition];
  }),
);

interface Codec {
  encode(message: unknown): { finish(): Uint8Array };
  decode(bytes: Uint8Array): unknown;
}

interface Codecs {
  readonly name: string;
  readonly requestType: Codec;
  readonly responseType: Codec;
}

/**
 * A runtime of IronCore in memory, which speaks IRI on a socket. Its machines are in `store`, where they can be changed behind everybody's
 * back; what it was asked is in `calls`; `fault` makes calls go wrong.
 */
export class IriRuntime implements AsyncDisposable {
  /** What clients connect to: `unix:///…`. */
  readonly address: string;
  readonly store = new MachineStore();
  readonly calls: ReceivedCall[] = [];
  readonly events: Event[] = [];
  readonly #socket: string;
  /** Is removed with it. */
  readonly #folder: string | undefined;
  readonly #name: string;
  readonly #version: string;
  readonly #capabilities: IriRuntimeOptions['capabilities'];
  readonly #faults = new Map<RuntimeMethod, { fault: Fault; left: number }>();
  #server: Server | undefined;

  private constructor(folder: string | undefined, options: IriRuntimeOptions & { readonly socket: string }) {
    const { socket, classes = {}, name = 'sim', version = '1.0.0' } = options;
    this.#folder = folder;
    this.#socket = socket;
    this.#name = name;
    this.#version = version;
    this.#capabilities = options.capabilities;
    this.address = `unix://${socket}`;
    for (const [machineClass, quantity] of Object.entries(classes)) this.setQuantity(machineClass, quantity);
  }

  static async start(options: IriRuntimeOptions = {}): Promise<IriRuntime> {
    const folder = options.socket === undefined ? await mkdtemp(path.join(tmpdir(), 'iri-')) : undefined;
    const { socket = path.join(folder ?? '', 'iri.sock') } = options;
    const runtime = new IriRuntime(folder, { ...options, socket });
    await runtime.listen();
    return runtime;
  }

  /** Listens again after `kill`; machines are as they were. */
  async listen(): Promise<void> {
    await rm(this.#socket, { force: true }); // of a process that was killed
    const server = createServer();
    server.add(SERVICE, this.#service());
    await server.listen(this.address);
    this.#server = server;
  }

  /** Every call ends without an answer, and nobody listens any more. */
  async kill(): Promise<void> {
    this.#server?.forceShutdown();
    this.#server = undefined;
    await rm(this.#socket, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    if (this.#folder !== undefined) await rm(this.#folder, { recursive: true, force: true });
  }

  /** Room for machines of a class from now on; undefined: the class is no longer there. */
  setQuantity(machineClass: string, quantity: number | undefined): void {
    if (quantity === undefined) this.store.quantities.delete(machineClass);
    else this.store.quantities.set(machineClass, BigInt(quantity));
  }

  /** The next calls of a method go wrong, so many of them. */
  fault(method: RuntimeMethod, fault: Fault, times = Infinity): void {
    this.#faults.set(method, { fault, left: times });
  }

  /** Calls go right again; those that hang go on hanging. */
  clearFaults(): void {
    this.#faults.clear();
  }

  /** The runtime tells of a machine. */
  emit(id: string, reason: string, { message = '', type = 'Normal', seconds = 0 } = {}): void {
    const { metadata } = this.store.get(id);
    const involvedObjectMeta = { ...metadata };
    this.events.push({ spec: { involvedObjectMeta, reason, message, type, eventTime: BigInt(seconds), action: '' } });
  }

  /** What was asked by this method, in order. */
  asked(method: RuntimeMethod): readonly unknown[] {
    return this.calls.filter((call) => call.method === method).map(({ request }) => request);
  }

  /** Names of the methods that were called which change something, in order. */
  get changes(): readonly RuntimeMethod[] {
    return this.calls.map(({ method }) => method).filter((method) => !READS.has(method));
  }

  #service(): Record<string, Handler> {
    const { store } = this;
    const service: ServiceImplementation<MachineRuntimeDefinition> = {
      version: async () => ({ runtimeName: this.#name, runtimeVersion: this.#version }),
      listEvents: async ({ filter }) => {
        const { eventsFromTime = 0n, eventsToTime = 0n } = filter ?? {};
        const events = this.events.filter(({ spec }) => {
          const at = spec?.eventTime ?? 0n;
          return at >= eventsFromTime && (eventsToTime === 0n || at <= eventsToTime);
        });
        return { events };
      },
      listMachines: async ({ filter }) => ({ machines: store.list(filter) }),
      createMachine: async ({ machine }) => {
        if (machine === undefined) throw new ServerError(Status.INVALID_ARGUMENT, 'there is no machine');
        return { machine: store.create(machine) };
      },
      deleteMachine: async ({ machineId }) => {
        store.delete(machineId);
        return {};
      },
      updateMachineAnnotations: async ({ machineId, annotations }) => {
        store.annotate(machineId, annotations);
        return {};
      },
      updateMachinePower: async ({ machineId, power }) => {
        store.setPower(machineId, power);
        return {};
      },
      attachVolume: async ({ machineId, volume }) => {
        store.attachVolume(machineId, volume);
        return {};
      },
      updateVolume: async ({ machineId, volume }) => {
        store.updateVolume(machineId, volume);
        return {};
      },
      detachVolume: async ({ machineId, name }) => {
        store.detachVolume(machineId, name);
        return {};
      },
      attachNetworkInterface: async ({ machineId, networkInterface }) => {
        store.attachNetworkInterface(machineId, networkInterface);
        return {};
      },
      detachNetworkInterface: async ({ machineId, name }) => {
        store.detachNetworkInterface(machineId, name);
        return {};
      },
      status: async () => ({
        machineClassStatus: [...store.quantities].map(([name, quantity]) => ({
          machineClass: { name, capabilities: this.#capabilities && { resources: { ...this.#capabilities } } },
          quantity,
        })),
      }),
      exec: async () => {
        throw new ServerError(Status.UNIMPLEMENTED, 'there is no console');
      },
    };
    // All of them as the same kind of function: what they take and give is checked above.
    const handlers = service as unknown as Record<string, Handler>;
    const methods = Object.entries(MachineRuntimeDefinition.methods);
    return Object.fromEntries(methods.map(([key, { name }]) => [key, this.#received(name, handlers[key] as Handler)]));
  }

  #received(method: RuntimeMethod, handler: Handler): Handler {
    return async (request, context) => {
      this.calls.push({ method, request });
      const fault = this.#take(method);
      if (fault?.kind === 'refuse') throw new ServerError(fault.status, fault.details ?? 'refused');
      const answer = fault?.kind === 'hang' ? undefined : await handler(request, context);
      if (fault === undefined) return answer;
      if (fault.kind === 'drop') throw new ServerError(Status.UNAVAILABLE, 'the connection was lost');
      if (fault.kind === 'garbage') return new Raw(fault.bytes);
      return await new Promise<never>((_resolve, reject) => {
        context.signal.addEventListener('abort', () => reject(new ServerError(Status.CANCELLED, 'given up')));
      });
    };
  }

  #take(method: RuntimeMethod): Fault | undefined {
    const rule = this.#faults.get(method);
    if (rule === undefined || rule.left <= 0) return undefined;
    rule.left -= 1;
    return rule.fault;
  }
}
