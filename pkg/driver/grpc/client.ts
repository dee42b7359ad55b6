import { ClientError, Metadata, createClient, type CallOptions, type Client } from 'nice-grpc';

import type { Clock } from '../../base/clock/clock.ts';
import { untilAborted } from '../../base/clock/deadline.ts';
import type { Logger } from '../../base/log/logger.ts';
import type {
  Capabilities,
  CreatedMachine,
  Driver,
  DriverCall,
  ListedMachine,
  MachineRequest,
  VirtualMachine,
} from '../driver.ts';
import { messageOf } from '../errno.ts';
import { DriverError } from '../error.ts';
import type { DriverAddress } from './address.ts';
import { DriverConnection } from './connection.ts';
import { fromFailure } from './failure.ts';
import {
  DriverServiceDefinition,
  type Failure,
  type GetCapabilitiesResponse,
  type VirtualMachine as WireVM,
} from './gen/machine/driver/v1/driver.ts';
import { toGrpcTimeout } from './grpc-timeout.ts';
import {
  CONTRACT_VERSION,
  fromCapabilities,
  fromListedMachine,
  fromVirtualMachine,
  toCall,
  toClassRequest,
  toMachineRequest,
  toVolumeSpec,
} from './messages.ts';
import { statusText, unansweredError, type CallEnd } from './transport-error.ts';
import { withoutSecrets } from '../without-secrets.ts';

/** How long GetCapabilities, and with it the first contact of a connection, may take. */
const HELLO_TIMEOUT_MS = 10_000;
/** A driver that is being restarted is back in a moment; callers would come back only after seconds. */
const RESTART_MS = 2_000;
const PAGE_SIZE = 500;
const NO_SECRETS = { secretData: {} };
/** A driver whose pages never end is broken; this many hold 5 million VMs. */
const MAX_PAGES = 10_000;

export interface GrpcDriverOptions {
  /** Under which name it is configured, for people; undefined: the address says enough. */
  readonly provider?: string;
  readonly address: DriverAddress;
  readonly clock: Clock;
  readonly log: Logger;
  /** Told how each attempt to get to know the driver ended: with an error, or well. */
  readonly greeted?: (err: DriverError | undefined) => void;
}

/**
 * A driver in another process. Connects when first used and again after each loss; asks GetCapabilities first on each
 * connection, and again when a method that it has named is not implemented: some find that out by the first call of it. Safe for any number of
 * calls at once.
 */
export class GrpcDriver implements Driver {
  readonly #clock: Clock;
  readonly #log: Logger;
  /** `driver aws (unix:///run/driver/aws.sock)`. */
  readonly #label: string;
  readonly #connection: DriverConnection;
  readonly #client: Client<DriverServiceDefinition>;
  readonly #greeted: (err: DriverError | undefined) => void;
  /** Answer of the present connection; undefined until it is asked for. */
  #capabilities: Promise<Capabilities> | undefined;
  /** Methods because of which it was asked again on the present connection: once for each, also if it goes on naming them. */
  readonly #denied = new Set<string>();
  /** When a connection over which it had answered was lost; undefined before that. */
  #lostAtMs: number | undefined;
  #hasAnswered = false;

  constructor(options: GrpcDriverOptions) {
    this.#clock = options.clock;
    const { target } = options.address;
    this.#label = options.provider === undefined ? `driver at ${target}` : `driver ${options.provider} (${target})`;
    this.#greeted = options.greeted ?? ((): void => undefined);
    this.#log = options.log.child({ driver: target });
    this.#connection = new DriverConnection(options.address, this.#log, () => {
      this.#capabilities = undefined;
      this.#denied.clear();
      if (this.#hasAnswered) this.#lostAtMs ??= this.#clock.monotonicMs();
    });
    this.#client = createClient(DriverServiceDefinition, this.#connection.channel);
  }

  async capabilities(signal: AbortSignal): Promise<Capabilities> {
    signal.throwIfAborted();
    return await untilAborted(this.#capabilities ?? this.#askOnce(), signal);
  }

  async createMachine(request: MachineRequest, call: DriverCall): Promise<CreatedMachine> {
    const response = await this.#call('CreateMachine', true, request, call, (options) =>
      this.#client.createMachine(toMachineRequest(request, call), options),
    );
    const lastKnownState = response.lastKnownState === '' ? undefined : response.lastKnownState;
    return { ...existing('CreateMachine', response.vm), lastKnownState };
  }

  async initializeMachine(request: MachineRequest, call: DriverCall): Promise<VirtualMachine> {
    await this.#requireMethod('InitializeMachine', call.signal);
    const response = await this.#call('InitializeMachine', true, request, call, (options) =>
      this.#client.initializeMachine(toMachineRequest(request, call), options),
    );
    // The VM was known before: a driver need not tell of it.
    return response.vm === undefined
      ? { providerID: '', nodeName: '', addresses: [] }
      : fromVirtualMachine(response.vm);
  }

  async getMachineStatus(request: MachineRequest, call: DriverCall): Promise<VirtualMachine> {
    const response = await this.#call('GetMachineStatus', false, request, call, (options) =>
      this.#client.getMachineStatus(toMachineRequest(request, call), options),
    );
    return existing('GetMachineStatus', response.vm);
  }

  async deleteMachine(request: MachineRequest, call: DriverCall): Promise<{ lastKnownState: string | undefined }> {
    const response = await this.#call('DeleteMachine', true, request, call, (options) =>
      this.#client.deleteMachine(toMachineRequest(request, call), options),
    );
    return { lastKnownState: response.lastKnownState === '' ? undefined : response.lastKnownState };
  }

  async listMachines(request: Omit<MachineRequest, 'machine'>, call: DriverCall): Promise<readonly ListedMachine[]> {
    await this.#requireMethod('ListMachines', call.signal);
    const base = { call: toCall(call), ...toClassRequest(request), pageSize: PAGE_SIZE };
    const machines: ListedMachine[] = [];
    let pageToken = '';
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const response = await this.#call('ListMachines', false, request, call, (options) =>
        this.#client.listMachines({ ...base, pageToken }, options),
      );
      const withoutID = response.machines.find(({ providerId }) => providerId === '');
      // What has no ID would be asked for, and deleted, by the name of a machine.
      if (withoutID !== undefined)
        throw new DriverError('Internal', `ListMachines returned no provider ID for machine ${withoutID.machineName}`);
      machines.push(...response.machines.map(fromListedMachine));
      pageToken = response.nextPageToken;
      if (pageToken === '') return machines;
    }
    throw new DriverError('Internal', `ListMachines did not end after ${MAX_PAGES} pages`);
  }

  async getVolumeIDs(pvSpecs: readonly unknown[], call: DriverCall): Promise<readonly string[]> {
    await this.#requireMethod('GetVolumeIDs', call.signal);
    const response = await this.#call('GetVolumeIDs', false, NO_SECRETS, call, (options) =>
      this.#client.getVolumeIDs({ call: toCall(call), volumeSpecs: pvSpecs.map(toVolumeSpec) }, options),
    );
    return response.volumeIds;
  }

  async close(): Promise<void> {
    this.#connection.close();
    await Promise.resolve();
  }

  /** One call, after the connection's capabilities are known. Throws DriverError, which repeats nothing of the Secret. */
  async #call<R extends { failure: Failure | undefined; vm?: WireVM | undefined }>(
    method: string,
    mutation: boolean,
    { secretData }: Pick<MachineRequest, 'secretData'>,
    call: DriverCall,
    send: (options: CallOptions) => Promise<R>,
  ): Promise<R> {
    const { methods } = await this.#greet(call.signal);
    const hide = (text: string): string => withoutSecrets(text, secretData);
    const response = await this.#send(method, mutation, call.signal, call.timeoutMs, send, hide);
    const { failure } = response;
    if (failure === undefined) return response;
    const error = fromFailure({ ...failure, message: hide(failure.message) }, response.vm);
    if (error.code === 'Unimplemented' && (methods as ReadonlySet<string>).has(method)) this.#askAgain(method);
    throw error;
  }

  #askAgain(method: string): void {
    if (this.#denied.has(method)) return;
    this.#denied.add(method);
    this.#capabilities = undefined;
  }

  async #send<R>(
    method: string,
    mutation: boolean,
    signal: AbortSignal,
    timeoutMs: number,
    send: (options: CallOptions) => Promise<R>,
    hide?: (text: string) => string,
  ): Promise<R> {
    const end = { method, mutation, signal, timeoutMs, hide };
    return await this.#timed(end, send, unansweredError);
  }

  /** One call within its time; what ends it without an answer is told by `tell`. */
  async #timed<R>(
    end: Omit<CallEnd, 'timedOut'>,
    send: (options: CallOptions) => Promise<R>,
    tell: (err: unknown, end: CallEnd) => Error,
  ): Promise<R> {
    const { timeoutMs, signal } = end;
    const deadline = new AbortController();
    const cancel = this.#clock.schedule(timeoutMs, () => deadline.abort());
    try {
      const metadata = Metadata({ 'grpc-timeout': toGrpcTimeout(timeoutMs) });
      return await send({ metadata, signal: AbortSignal.any([signal, deadline.signal]) });
    } catch (err) {
      throw tell(err, { ...end, timedOut: deadline.signal.aborted });
    } finally {
      cancel();
    }
  }

  /** Asks on behalf of everyone who waits; a failure is forgotten, so that the next call tries again. */
  #askOnce(): Promise<Capabilities> {
    const asked: Promise<Capabilities> = this.#askCapabilities().catch((err: unknown) => {
      if (this.#capabilities === asked) this.#capabilities = undefined;
      // Never the code of the answer: an Unimplemented here would read as "this VM cannot be asked for".
      const why = err instanceof DriverError ? err.detail : messageOf(err);
      const unusable = new DriverError('Unavailable', `${this.#label} ${why}`, { cause: err });
      this.#greeted(unusable);
      throw unusable;
    });
    this.#capabilities = asked;
    return asked;
  }

  /** Rejects with what the driver does instead. */
  async #askCapabilities(): Promise<Capabilities> {
    await this.#connection.settle(RESTART_MS);
    const response = await this.#hello();
    if (response.failure !== undefined) {
      const { code, detail } = fromFailure(response.failure);
      throw new Error(`returned ${code} for GetCapabilities: ${detail}`);
    }
    if (response.contractVersion !== CONTRACT_VERSION) {
      throw new Error(`uses contract version "${response.contractVersion}", not ${CONTRACT_VERSION}`);
    }
    const capabilities = fromCapabilities(response);
    this.#greeted(undefined);
    this.#reportConnected(capabilities);
    this.#connection.watch();
    return capabilities;
  }

  async #hello(): Promise<GetCapabilitiesResponse> {
    const { signal } = new AbortController();
    const end = { method: 'GetCapabilities', mutation: false, signal, timeoutMs: HELLO_TIMEOUT_MS };
    return await this.#timed(
      end,
      (options) => this.#client.getCapabilities({ contractVersions: [CONTRACT_VERSION] }, options),
      (err, { timedOut }) => {
        if (timedOut) return new Error(`did not respond within ${HELLO_TIMEOUT_MS} ms`);
        return new Error(`did not respond: ${err instanceof ClientError ? statusText(err) : messageOf(err)}`);
      },
    );
  }

  /** One that is back before anybody has missed it is told to have been away, too. */
  #reportConnected({ name, methods }: Capabilities): void {
    const fields = { name, methods: [...methods] };
    if (this.#lostAtMs === undefined) {
      const isAgain = this.#denied.size > 0;
      this.#log.info(fields, isAgain ? 'driver does not implement a method that it had named' : 'connected to driver');
    } else {
      const ms = this.#clock.monotonicMs() - this.#lostAtMs;
      this.#log.info({ ...fields, ms }, 'reconnected to driver');
    }
    this.#hasAnswered = true;
    this.#lostAtMs = undefined;
  }

  /** Nothing has been sent yet when this fails, so the mutation certainly did not happen. */
  async #greet(signal: AbortSignal): Promise<Capabilities> {
    try {
      return await this.capabilities(signal);
    } catch (err) {
      if (err instanceof DriverError) throw err;
      throw new DriverError('Canceled', `call was aborted: ${messageOf(err)}`, { cause: err });
    }
  }

  async #requireMethod(
    method: 'InitializeMachine' | 'ListMachines' | 'GetVolumeIDs',
    signal: AbortSignal,
  ): Promise<void> {
    const { methods, name } = await this.#greet(signal);
    if (!methods.has(method)) throw new DriverError('Unimplemented', `driver ${name} does not implement ${method}`);
  }
}

/** A success without a VM is no answer: what happened is unknown. */
function existing(method: string, vm: WireVM | undefined): VirtualMachine {
  if (vm === undefined || vm.providerId === '') {
    throw new DriverError('Internal', `${method} returned no provider ID`, {
      unanswered: method === 'CreateMachine',
    });
  }
  return fromVirtualMachine(vm);
}
