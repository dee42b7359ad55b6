import { ServerError, Status, type CallContext, type ServiceImplementation } from 'nice-grpc';

import type { Clock } from '../../base/clock/clock.ts';
import type { Logger } from '../../base/log/logger.ts';
import type { ServedDriverMetrics } from '../../base/metrics/served-driver.ts';
import type { Driver, DriverCall, ListedMachine, MachineRequest } from '../driver.ts';
import { messageOf } from '../errno.ts';
import { DRIVER_CODES, DriverError } from '../error.ts';
import type { FencingGuard } from '../fencing.ts';
import { toFailure } from './failure.ts';
import type * as wire from './gen/machine/driver/v1/driver.ts';
import {
  CONTRACT_VERSION,
  fromCall,
  fromClassRequest,
  fromMachineRequest,
  fromVolumeSpec,
  toCapabilities,
  toListedMachine,
  toVirtualMachine,
} from './messages.ts';

/** VMs in one page when the caller leaves it to us. */
const DEFAULT_PAGE_SIZE = 500;

export interface ServiceDeps {
  /** The provider's half. It must honour `call.signal` and throw DriverError. */
  readonly driver: Driver;
  readonly fencing: FencingGuard;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: ServedDriverMetrics;
}

type Answer<Response> = Promise<wire.DeepPartial<Response>>;

interface CallRequest {
  readonly call: wire.Call | undefined;
}

interface FailedAnswer {
  readonly failure: wire.DeepPartial<wire.Failure>;
  readonly vm?: wire.DeepPartial<wire.VirtualMachine>;
}

/**
 * Serves a Driver under the contract: translates messages, cuts lists into pages, refuses old fencing tokens before the
 * driver is called, aborts `call.signal` at the deadline, and puts what the driver throws into `failure`.
 */
export class DriverService implements ServiceImplementation<wire.DriverServiceDefinition> {
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
  }

  async getCapabilities(
    request: wire.GetCapabilitiesRequest,
    context: CallContext,
  ): Answer<wire.GetCapabilitiesResponse> {
    if (!request.contractVersions.includes(CONTRACT_VERSION)) {
      const offered = request.contractVersions.join(', ');
      const message = `this driver uses contract version ${CONTRACT_VERSION}, but the caller requested ${offered}`;
      return { failure: toFailure(new DriverError('FailedPrecondition', message)) };
    }
    return toCapabilities(await this.#deps.driver.capabilities(context.signal));
  }

  async createMachine(request: wire.CreateMachineRequest, context: CallContext): Answer<wire.CreateMachineResponse> {
    return await this.#answer('CreateMachine', request, context, async (call) => {
      const created = await this.#deps.driver.createMachine(await this.#admitted(request, call), call);
      return { vm: toVirtualMachine(created), lastKnownState: created.lastKnownState ?? '' };
    });
  }

  async initializeMachine(
    request: wire.InitializeMachineRequest,
    context: CallContext,
  ): Answer<wire.InitializeMachineResponse> {
    return await this.#answer('InitializeMachine', request, context, async (call) => {
      const vm = await this.#deps.driver.initializeMachine(await this.#admitted(request, call), call);
      return { vm: toVirtualMachine(vm) };
    });
  }

  async getMachineStatus(
    request: wire.GetMachineStatusRequest,
    context: CallContext,
  ): Answer<wire.GetMachineStatusResponse> {
    return await this.#answer('GetMachineStatus', request, context, async (call) => ({
      vm: toVirtualMachine(
        await this.#deps.driver.getMachineStatus(
          decoded(() => fromMachineRequest(request)),
          call,
        ),
      ),
    }));
  }

  async deleteMachine(request: wire.DeleteMachineRequest, context: CallContext): Answer<wire.DeleteMachineResponse> {
    return await this.#answer('DeleteMachine', request, context, async (call) => {
      const deleted = await this.#deps.driver.deleteMachine(await this.#admitted(request, call), call);
      return { lastKnownState: deleted.lastKnownState ?? '' };
    });
  }

  async listMachines(request: wire.ListMachinesRequest, context: CallContext): Answer<wire.ListMachinesResponse> {
    return await this.#answer('ListMachines', request, context, async (call) => {
      const machines = await this.#deps.driver.listMachines(
        decoded(() => fromClassRequest(request)),
        call,
      );
      return pageOf(machines, request.pageSize > 0 ? request.pageSize : DEFAULT_PAGE_SIZE, request.pageToken);
    });
  }

  async getVolumeIDs(request: wire.GetVolumeIDsRequest, context: CallContext): Answer<wire.GetVolumeIDsResponse> {
    return await this.#answer('GetVolumeIDs', request, context, async (call) => ({
      volumeIds: [
        ...(await this.#deps.driver.getVolumeIDs(
          decoded(() => request.volumeSpecs.map(fromVolumeSpec)),
          call,
        )),
      ],
    }));
  }

  /** The request of a mutation, once its fencing token has been accepted. */
  async #admitted(request: wire.GetMachineStatusRequest, call: DriverCall): Promise<MachineRequest> {
    const decodedRequest = decoded(() => fromMachineRequest(request));
    await this.#deps.fencing.admit(call.cluster, request.machine?.namespace ?? '', call.fencingToken);
    return decodedRequest;
  }

  async #answer<R extends object>(
    method: string,
    request: CallRequest,
    context: CallContext,
    run: (call: DriverCall) => Promise<R>,
  ): Promise<R | FailedAnswer> {
    const { clock, metrics } = this.#deps;
    if (metrics === undefined) return await this.#carryOut(method, request, context, run);
    const startedMs = clock.monotonicMs();
    metrics.running.inc({ method });
    let code = 'none';
    try {
      const answer = await this.#carryOut(method, request, context, run);
      code = codeIn(answer);
      return answer;
    } finally {
      metrics.running.dec({ method });
      metrics.answered.observe({ method, code }, (clock.monotonicMs() - startedMs) / 1_000);
    }
  }

  async #carryOut<R extends object>(
    method: string,
    request: CallRequest,
    context: CallContext,
    run: (call: DriverCall) => Promise<R>,
  ): Promise<R | FailedAnswer> {
    const deadline = new AbortController();
    const call = fromCall(request.call, AbortSignal.any([context.signal, deadline.signal]));
    const cancel = this.#deps.clock.schedule(call.timeoutMs, () => deadline.abort(new Error('deadline exceeded')));
    try {
      return await run(call);
    } catch (err) {
      if (call.signal.aborted) {
        // Stopped halfway: nobody knows what happened, and a Failure would claim to know.
        throw new ServerError(
          deadline.signal.aborted ? Status.DEADLINE_EXCEEDED : Status.CANCELLED,
          `${method} was cancelled`,
        );
      }
      if (!(err instanceof DriverError)) this.#deps.log.error({ err, method }, 'driver threw an unexpected error');
      return { failure: toFailure(err), ...vmOf(err) };
    } finally {
      cancel();
    }
  }
}

/** Name of the code of a failure; OK for a success. */
function codeIn(answer: object): string {
  const { failure } = answer as Partial<FailedAnswer>; // whatever is answered may have one
  return DRIVER_CODES[failure?.code ?? 0] ?? 'Unknown';
}

/** What was known of the VM when the call failed. */
function vmOf(err: unknown): { vm?: wire.DeepPartial<wire.VirtualMachine> } {
  if (!(err instanceof DriverError) || err.result === undefined) return {};
  return { vm: { providerId: err.result.providerID ?? '', nodeName: err.result.nodeName ?? '' } };
}

/**
 * One page, in the order of provider ids; the token is the last id of the page before. No state is kept between pages, and a
 * VM that exists throughout is on exactly one of them.
 */
function pageOf(
  machines: readonly ListedMachine[],
  pageSize: number,
  pageToken: string,
): { machines: wire.ListedMachine[]; nextPageToken: string } {
  const rest = machines
    .filter((vm) => vm.providerID > pageToken)
    .toSorted((a, b) => (a.providerID < b.providerID ? -1 : 1));
  const page = rest.slice(0, pageSize);
  const isLast = rest.length <= pageSize;
  return { machines: page.map(toListedMachine), nextPageToken: isLast ? '' : (page.at(-1)?.providerID ?? '') };
}

/** Runs a decoder; what it throws is the caller's fault. */
function decoded<T>(decode: () => T): T {
  try {
    return decode();
  } catch (err) {
    throw new DriverError('InvalidArgument', messageOf(err), { terminal: true });
  }
}
