import { ClientError, createClient, type CallOptions, type Client, type Status } from 'nice-grpc';

import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import { DeadlineError, withDeadline } from '../../base/clock/deadline.ts';
import { READ_TIMEOUT_MS, DELETE_TIMEOUT_MS, repeatableTimeoutMs, wholeTimeoutMs } from '../deadlines.ts';
import type { DriverCall, MachineRequest } from '../driver.ts';
import { messageOf } from '../errno.ts';
import { DriverConnection } from '../grpc/connection.ts';
import { HealthCheckResponse_ServingStatus, HealthDefinition } from '../grpc/gen/grpc/health/v1/health.ts';
import {
  DriverServiceDefinition,
  type CreateMachineResponse,
  type DeleteMachineResponse,
  type Failure,
  type GetCapabilitiesResponse,
  type GetMachineStatusResponse,
  type GetVolumeIDsResponse,
  type InitializeMachineResponse,
  type ListMachinesResponse,
} from '../grpc/gen/machine/driver/v1/driver.ts';
import { CONTRACT_VERSION, toCall, toClassRequest, toMachineRequest, toVolumeSpec } from '../grpc/messages.ts';
import { statusText } from '../grpc/transport-error.ts';
import { silentLogger } from '../../base/log/logger.ts';
import type { SecretData, VerifyOptions } from './options.ts';
import { answerText, Violation } from './violation.ts';

/** How long a driver that is being started is waited for. */
const CONNECT_MS = 2_000;
/** Longest that its first answer may take. */
const HELLO_MS = 10_000;
const DEFAULT_LAG_MS = 10_000;

/** Whose VM a call is about, and of which class it is. */
export interface Subject {
  readonly cluster: string;
  readonly namespace: string;
  readonly name: string;
  /** Empty for a VM without a machine. */
  readonly uid: string;
  /** Empty before it is known. */
  readonly providerID: string;
  readonly machineClass: MachineClass;
}

/** What a call is sent with; each may be left out. */
export interface Sent {
  readonly token?: bigint;
  /** How long the driver is told that its caller waits. */
  readonly timeoutMs?: number;
  /** Gives the call up. */
  readonly signal?: AbortSignal;
  readonly secretData?: SecretData;
}

/** A call that ended with a gRPC status instead of an answer. */
export class NoAnswer extends Violation {
  readonly status: Status;

  constructor(method: string, err: ClientError) {
    super(`${method} was not answered: ${statusText(err)}`, 'an answer');
    this.status = err.code;
  }
}

/** A call to which neither an answer nor an end came in its time. */
export class CallTimeout extends Violation {}

/** The contract as it is spoken, without the care that a manager takes of what it hears. Every text that it hears is kept. */
export class Conversation {
  readonly #options: VerifyOptions;
  readonly #connection: DriverConnection;
  readonly #client: Client<DriverServiceDefinition>;
  readonly #heard: string[] = [];
  /** Method of the first call since `forget`. */
  #first = '';
  #latest = '';
  /** Method of a call that was given up, as long as none followed. */
  #givenUp = '';
  /** How often a connection that was watched was lost. */
  #losses = 0;

  constructor(options: VerifyOptions) {
    this.#options = options;
    this.#connection = new DriverConnection(options.address, silentLogger, () => this.#losses++);
    this.#client = createClient(DriverServiceDefinition, this.#connection.channel);
  }

  /** What the driver said in words, with its answers. */
  get heard(): readonly string[] {
    return this.#heard;
  }

  /** For people: what the driver answered last, or was asked first since `forget`. */
  get latest(): string {
    if (this.#latest !== '') return this.#latest;
    return this.#first === '' ? 'no call was sent yet' : `waiting for the answer of ${this.#first}`;
  }

  /** As `latest`, and which call was given up while its answer was waited for, if that was the end. */
  get end(): string {
    if (this.#givenUp === '' || this.#latest === '') return this.latest;
    return `waiting for the answer of ${this.#givenUp}; before it, ${this.#latest}`;
  }

  forget(): void {
    this.#first = '';
    this.#latest = '';
    this.#givenUp = '';
  }

  close(): void {
    this.#connection.close();
  }

  /** Watches the connection of now. Returns whether it was lost since, as it is when the process at its other end has ended. */
  watch(): () => boolean {
    const before = this.#losses;
    this.#connection.watch();
    return () => this.#losses > before;
  }

  /** Who the driver is. Waits a moment for one that is being started. */
  async capabilities(signal: AbortSignal): Promise<GetCapabilitiesResponse> {
    await this.#connection.settle(CONNECT_MS);
    return await this.#send('GetCapabilities', { timeoutMs: HELLO_MS, signal }, (options) =>
      this.#client.getCapabilities({ contractVersions: [CONTRACT_VERSION] }, options),
    );
  }

  /** Whether the health service says that the driver serves. */
  async isServing(signal: AbortSignal): Promise<boolean> {
    const health = createClient(HealthDefinition, this.#connection.channel);
    const { status } = await this.#send(
      'grpc.health.v1.Health/Check',
      { timeoutMs: HELLO_MS, signal },
      async (options) => ({
        ...(await health.check({ service: '' }, options)),
        failure: undefined,
      }),
    );
    return status === HealthCheckResponse_ServingStatus.SERVING;
  }

  /** `mayRepeat`: the driver says idempotent_create, so that a manager waits for less. */
  async create(subject: Subject, sent: Sent, mayRepeat: boolean): Promise<CreateMachineResponse> {
    const usualMs = mayRepeat ? repeatableTimeoutMs(0, 0) : wholeTimeoutMs(0);
    return await this.#about('CreateMachine', subject, sent, usualMs, (request, options) =>
      this.#client.createMachine(request, options),
    );
  }

  async initialize(subject: Subject, sent: Sent): Promise<InitializeMachineResponse> {
    return await this.#about('InitializeMachine', subject, sent, repeatableTimeoutMs(0, 0), (request, options) =>
      this.#client.initializeMachine(request, options),
    );
  }

  async status(subject: Subject, sent: Sent): Promise<GetMachineStatusResponse> {
    return await this.#about('GetMachineStatus', subject, sent, READ_TIMEOUT_MS, (request, options) =>
      this.#client.getMachineStatus(request, options),
    );
  }

  async delete(subject: Subject, sent: Sent): Promise<DeleteMachineResponse> {
    return await this.#about('DeleteMachine', subject, sent, DELETE_TIMEOUT_MS, (request, options) =>
      this.#client.deleteMachine(request, options),
    );
  }

  /** One page of the VMs of a class. */
  async page(
    { cluster, machineClass }: Pick<Subject, 'cluster' | 'machineClass'>,
    sent: Sent,
    page: { readonly pageSize: number; readonly pageToken: string },
  ): Promise<ListMachinesResponse> {
    const call = this.#callOf(cluster, sent, READ_TIMEOUT_MS);
    const request = {
      call: toCall(call),
      ...toClassRequest({ machineClass, secretData: this.#secretOf(sent) }),
      ...page,
    };
    return await this.#send('ListMachines', call, (options) => this.#client.listMachines(request, options));
  }

  async volumeIDs(cluster: string, specs: readonly unknown[], sent: Sent): Promise<GetVolumeIDsResponse> {
    const call = this.#callOf(cluster, sent, READ_TIMEOUT_MS);
    return await this.#send('GetVolumeIDs', call, (options) =>
      this.#client.getVolumeIDs({ call: toCall(call), volumeSpecs: specs.map(toVolumeSpec) }, options),
    );
  }

  async #about<R extends Answer>(
    method: string,
    subject: Subject,
    sent: Sent,
    usualMs: number,
    send: (request: ReturnType<typeof toMachineRequest>, options: CallOptions) => Promise<R>,
  ): Promise<R> {
    const call = this.#callOf(subject.cluster, sent, usualMs);
    const request = toMachineRequest(
      { machine: machineOf(subject), machineClass: subject.machineClass, secretData: this.#secretOf(sent) },
      call,
    );
    return await this.#send(method, call, (options) => send(request, options));
  }

  #secretOf({ secretData = this.#options.secretData }: Sent): SecretData {
    return secretData;
  }

  #callOf(cluster: string, { token = 0n, timeoutMs, signal }: Sent, usualMs: number): DriverCall {
    const never = new AbortController().signal;
    return {
      cluster,
      fencingToken: token,
      timeoutMs: timeoutMs ?? this.#options.callMs ?? usualMs,
      signal: signal ?? never,
    };
  }

  /** No gRPC deadline is set: whether the driver keeps to the time that it is told is part of what is looked at. */
  async #send<R extends Answer>(
    method: string,
    { timeoutMs, signal }: Pick<DriverCall, 'timeoutMs' | 'signal'>,
    send: (options: CallOptions) => Promise<R>,
  ): Promise<R> {
    const { clock, lagMs = DEFAULT_LAG_MS } = this.#options;
    this.#first ||= method;
    this.#givenUp = '';
    try {
      const answer = await withDeadline(clock, timeoutMs + lagMs, method, (both) => send({ signal: both }), signal);
      const { failure, lastKnownState = '' } = answer;
      this.#heard.push(failure?.message ?? '', failure?.lastKnownState ?? '', lastKnownState);
      this.#latest = `${method} returned ${answerText(failure)}`;
      return answer;
    } catch (err) {
      if (signal.aborted) this.#givenUp = method;
      signal.throwIfAborted();
      this.#latest = `${method} was not answered: ${err instanceof ClientError ? statusText(err) : messageOf(err)}`;
      if (err instanceof DeadlineError)
        throw new CallTimeout(
          `${method} neither returned nor gave up within its timeout of ${timeoutMs} ms`,
          'a result or the end of the call within the timeout',
        );
      if (!(err instanceof ClientError)) throw new Violation(`${method} failed: ${messageOf(err)}`, 'an answer');
      this.#heard.push(err.details);
      throw new NoAnswer(method, err);
    }
  }
}

interface Answer {
  readonly failure: Failure | undefined;
  readonly lastKnownState?: string;
}

/** The object as a manager sends it; a VM without a machine has a stub. */
function machineOf({ namespace, name, uid, providerID }: Subject): MachineRequest['machine'] {
  const spec = providerID === '' ? {} : { providerID };
  if (uid === '') return { metadata: { namespace, name }, spec };
  return {
    apiVersion: 'machine.sapcloud.io/v1alpha1',
    kind: 'Machine',
    metadata: { namespace, name, uid, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec,
  };
}
