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
  textOf,
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

interface CallRequest {
  readonly call: wire.Call | undefined;
}

/** The members of all answers. */
type AnyAnswer = wire.CreateMachineResponse & wire.ListMachinesResponse & wire.GetVolumeIDsResponse;

/** Says nothing; it is an answer of every method but GetCapabilities. */
export const EMPTY_ANSWER: AnyAnswer = {
  failure: undefined,
  vm: undefined,
  lastKnownState: '',
  machines: [],
  nextPageToken: '',
  volumeIds: [],
};

const NO_CAPABILITIES: wire.GetCapabilitiesResponse = {
  failure: undefined,
  contractVersion: '',
  name: '',
  optionalMethods: [],
  idempotentCreate: false,
  listScope: 0,
};

const UNEXPECTED = 'driver threw an unexpected error';

/**
 * Serves a Driver under the contract: translates messages, cuts lists into pages, refuses old fencing tokens before the
 * driver is called, aborts `call.signal` at the deadline, and puts what the driver throws into `failure`.
 */
export function driverService(deps: ServiceDeps): ServiceImplementation<wire.DriverServiceDefinition> {
  const { driver, fencing, log } = deps;
  /** The request of a mutation, once its fencing token has been accepted. */
  const admitted = async (request: wire.GetMachineStatusRequest, call: DriverCall): Promise<MachineRequest> => {
    const decodedRequest = decoded(fromMachineRequest, request);
    await fencing.admit(call.cluster, request.machine?.namespace ?? '', call.fencingToken);
    return decodedRequest;
  };
  return {
    async getCapabilities({ contractVersions }, { signal }) {
      if (!contractVersions.includes(CONTRACT_VERSION)) {
        const offered = contractVersions.join(', ');
        const message = `this driver uses contract version ${CONTRACT_VERSION}, but the caller requested ${offered}`;
        return { ...NO_CAPABILITIES, failure: toFailure(new DriverError('FailedPrecondition', message)) };
      }
      try {
        return toCapabilities(saidBy(await driver.capabilities(signal)));
      } catch (err) {
        signal.throwIfAborted();
        if (!(err instanceof DriverError)) log.error({ err, method: 'GetCapabilities' }, UNEXPECTED);
        return { ...NO_CAPABILITIES, failure: toFailure(err) };
      }
    },

    createMachine: (request, context) =>
      answer(deps, 'CreateMachine', request, context, async (call) => {
        const created = saidBy(await driver.createMachine(await admitted(request, call), call));
        return { vm: toVirtualMachine(created), lastKnownState: textOf(created.lastKnownState) };
      }),

    initializeMachine: (request, context) =>
      answer(deps, 'InitializeMachine', request, context, async (call) => ({
        vm: toVirtualMachine(saidBy(await driver.initializeMachine(await admitted(request, call), call))),
      })),

    getMachineStatus: (request, context) =>
      answer(deps, 'GetMachineStatus', request, context, async (call) => ({
        vm: toVirtualMachine(saidBy(await driver.getMachineStatus(decoded(fromMachineRequest, request), call))),
      })),

    deleteMachine: (request, context) =>
      answer(deps, 'DeleteMachine', request, context, async (call) => {
        const deleted = saidBy(await driver.deleteMachine(await admitted(request, call), call));
        return { lastKnownState: textOf(deleted.lastKnownState) };
      }),

    listMachines: (request, context) =>
      answer(deps, 'ListMachines', request, context, async (call) => {
        const machines = await driver.listMachines(decoded(fromClassRequest, request), call);
        return pageOf(machines, request.pageSize > 0 ? request.pageSize : DEFAULT_PAGE_SIZE, request.pageToken);
      }),

    getVolumeIDs: (request, context) =>
      answer(deps, 'GetVolumeIDs', request, context, async (call) => {
        const specs = decoded((encoded) => encoded.map(fromVolumeSpec), request.volumeSpecs);
        const ids: Iterable<string | null | undefined> = await driver.getVolumeIDs(specs, call);
        // The letters of a text are no IDs, and neither is what an object has in it: the drain would not wait for these volumes.
        if (typeof ids === 'string')
          throw new DriverError('Internal', 'GetVolumeIDs returned a text instead of a list');
        return { volumeIds: [...ids].map((id) => textOf(id)).filter((id) => id !== '') };
      }),
  };
}

/** What `run` answers, counted and timed where there are metrics. */
async function answer<R extends object>(
  deps: ServiceDeps,
  method: string,
  request: CallRequest,
  context: CallContext,
  run: (call: DriverCall) => Promise<R>,
): Promise<(R & { failure: undefined }) | AnyAnswer> {
  const { clock, metrics } = deps;
  if (metrics === undefined) return await carryOut(deps, method, request, context, run);
  const startedMs = clock.monotonicMs();
  metrics.running.inc({ method });
  let code = 'none';
  try {
    const reply = await carryOut(deps, method, request, context, run);
    code = DRIVER_CODES[reply.failure?.code ?? 0] ?? 'Unknown';
    return reply;
  } finally {
    metrics.running.dec({ method });
    metrics.answered.observe({ method, code }, (clock.monotonicMs() - startedMs) / 1_000);
  }
}

async function carryOut<R extends object>(
  { clock, log }: ServiceDeps,
  method: string,
  request: CallRequest,
  context: CallContext,
  run: (call: DriverCall) => Promise<R>,
): Promise<(R & { failure: undefined }) | AnyAnswer> {
  const deadline = new AbortController();
  const call = fromCall(request.call, AbortSignal.any([context.signal, deadline.signal]));
  const cancel = clock.schedule(call.timeoutMs, () => deadline.abort(new Error('deadline exceeded')));
  try {
    return { failure: undefined, ...(await run(call)) };
  } catch (err) {
    if (call.signal.aborted) {
      // Stopped halfway: nobody knows what happened, and a Failure would claim to know.
      throw new ServerError(
        deadline.signal.aborted ? Status.DEADLINE_EXCEEDED : Status.CANCELLED,
        `${method} was cancelled`,
      );
    }
    if (!(err instanceof DriverError)) log.error({ err, method }, UNEXPECTED);
    return failedAnswer(err);
  } finally {
    cancel();
  }
}

/** What a driver answers; one whose call has succeeded need not say anything. */
function saidBy<T extends object>(said: T | null | undefined): Partial<T> {
  return said ?? {};
}

/** The answer of a call that failed, with what was known of the VM then. */
export function failedAnswer(err: unknown): AnyAnswer {
  const failed = { ...EMPTY_ANSWER, failure: toFailure(err) };
  if (!(err instanceof DriverError) || err.result === undefined) return failed;
  // Nothing else of it: what a provider has told may be there whole, in its own form.
  const { providerID, nodeName } = saidBy(err.result);
  return { ...failed, vm: toVirtualMachine({ providerID, nodeName }) };
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
  const withoutID = machines.find(({ providerID }) => textOf(providerID) === '');
  // It would be on no page, as if it were not there.
  if (withoutID !== undefined) {
    const name = textOf(withoutID.machineName);
    throw new DriverError('Internal', `ListMachines returned no provider ID for machine ${name}`);
  }
  const rest = machines
    .filter((vm) => vm.providerID > pageToken)
    .toSorted((a, b) => (a.providerID < b.providerID ? -1 : 1));
  const page = rest.slice(0, pageSize);
  const isLast = rest.length <= pageSize;
  return { machines: page.map(toListedMachine), nextPageToken: isLast ? '' : (page.at(-1)?.providerID ?? '') };
}

/** Runs a decoder; what it throws is the caller's fault. */
function decoded<E, T>(decode: (encoded: E) => T, encoded: E): T {
  try {
    return decode(encoded);
  } catch (err) {
    throw new DriverError('InvalidArgument', messageOf(err), { terminal: true });
  }
}
