import { ServerError, Status } from './rpc-error.ts';
import type { Clock } from '../base/clock/clock.ts';
import { GateClosedError } from '../kube/gate/gate.ts';
import { describeBlockingOutages, type Outage } from '../kube/gate/outage.ts';
import { type HeldBack, whyHeld } from '../health/held-work.ts';
import { ApiError, isForbiddenOrNotServed } from '../kube/client/errors.ts';
import type { LogFields, Logger } from '../base/log/logger.ts';
import type { RpcHandler, IncomingCall, RpcOutcome, RpcName, RpcReply, RpcRequest } from './grpc-server.ts';
import type { AutoscalerMetrics } from './metrics.ts';
import type { RpcCall, Rpcs } from './rpcs.ts';
import type { PeerCertificate } from 'node:tls';

export interface Unavailable {
  readonly reason: string;
  /** Another process may answer them. */
  readonly isElsewhere: boolean;
}

/** Whether this process may answer, and if not, whether another one may. */
export function whyUnavailable(facts: {
  readonly lease: string;
  /** The work of the leadership has begun here, and has not ended. */
  readonly works: boolean;
  /** For how long this process may be sure yet that nobody else leads. */
  readonly trustedForMs: number;
  readonly outages: readonly Outage[];
  /** What waits although the work has begun. */
  readonly held: readonly HeldBack[];
}): Unavailable | undefined {
  const { lease, works, trustedForMs, outages, held } = facts;
  if (!works || trustedForMs <= 0) {
    const reason = `this process does not hold Lease ${lease}, or has just acquired it; reconnect to find its holder`;
    return { reason, isElsewhere: true };
  }
  if (outages.length > 0) return { reason: describeBlockingOutages(outages), isElsewhere: false };
  const [first] = held;
  return first && { reason: whyHeld(first), isElsewhere: false };
}

/** What is done with every call, whatever it comes to. */
interface Noting {
  /** Names that clients may show; undefined where anyone who can connect may call. */
  readonly clientNames: readonly string[] | undefined;
  readonly metrics: Pick<AutoscalerMetrics, 'duration'>;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface AnswerDeps extends Noting {
  readonly rpcs: Rpcs;
  /** Undefined: calls are answered. */
  readonly unavailable: () => Unavailable | undefined;
  /** Tells the client, or all of them, to connect to another process. */
  readonly drop: (call: IncomingCall) => void;
  /** The shipped file that grants what is changed. */
  readonly roleFile: string;
}

export interface RefusalDeps extends Noting {
  readonly refusalOf: (call: IncomingCall) => ServerError;
}

/** Those that change something: each has a line in the log at its usual level, the others at level debug. */
const CHANGES: ReadonlySet<RpcName> = new Set([
  'nodeGroupIncreaseSize',
  'nodeGroupDeleteNodes',
  'nodeGroupDecreaseTargetSize',
]);

/**
 * Those that an outage does not touch: without an answer a client would take it that there are no groups, and one that has started would never
 * remove the taints that it had left on Nodes, because it asks for their groups once, before its first refresh.
 */
const FROM_MEMORY: ReadonlySet<RpcName> = new Set([
  'nodeGroups',
  'nodeGroupForNode',
  'gPULabel',
  'getAvailableGPUTypes',
  'cleanup',
]);

/** One alternative name as Node writes it: what could be taken for another one is quoted as in JSON. */
const ALTERNATIVE = /([A-Za-z ]+):("(?:\\.|[^"\\])*"|[^,"]*)(?:, |$)/gy;

/** The names that a client's certificate shows: its common name, and its alternative names. */
export function namesOf({
  subject,
  subjectaltname = '',
}: Pick<PeerCertificate, 'subject' | 'subjectaltname'>): readonly string[] {
  const common: unknown = subject?.CN;
  const alternatives = [...subjectaltname.matchAll(ALTERNATIVE)]
    .filter(([, kind]) => kind === 'DNS' || kind === 'URI')
    .map(([, , text = '']) => (text.startsWith('"') ? String(JSON.parse(text)) : text));
  return [...(typeof common === 'string' ? [common] : []), ...alternatives];
}

/** Why a client is refused: it shows no certificate of our authority, or another name. */
export function authenticationErrorOf(
  call: Pick<IncomingCall, 'certificate'>,
  clientNames: readonly string[] | undefined,
): ServerError | undefined {
  if (clientNames === undefined) return undefined;
  if (call.certificate === undefined) {
    return new ServerError(
      Status.UNAUTHENTICATED,
      'no valid client certificate signed by --autoscaler-tls-client-ca: set cert, key and cacert in the cloud-config of the cluster-autoscaler',
    );
  }
  const names = namesOf(call.certificate);
  if (names.some((name) => clientNames.includes(name))) return undefined;
  return new ServerError(
    Status.PERMISSION_DENIED,
    `the client's certificate is for ${names.map((name) => JSON.stringify(name)).join(', ') || 'no name'}, and only ` +
      `${clientNames.map((name) => JSON.stringify(name)).join(', ')} may call: issue it for one of these names, or add its name to --autoscaler-client-name`,
  );
}

/** Answers calls: who calls, whether this process may answer, the method itself; then metrics and the log. */
export function answering(deps: AnswerDeps): RpcHandler {
  return noting(deps, (method, request, call) => outcomeOf(deps, method, request, call));
}

/** Answers no call; metrics and the log are the same. */
export function refusing(deps: RefusalDeps): RpcHandler {
  return noting(deps, (_method, _request, call) => {
    const { code, details } = deps.refusalOf(call);
    return Promise.resolve({ code, message: details });
  });
}

function noting(deps: Noting, answer: RpcHandler<IncomingCall & RpcCall>): RpcHandler {
  const { metrics, clock } = deps;
  return async <M extends RpcName>(
    method: M,
    request: RpcRequest<M>,
    incoming: IncomingCall,
  ): Promise<RpcOutcome<M>> => {
    const startMs = clock.monotonicMs();
    const reports: string[] = [];
    const call = {
      ...incoming,
      peer: peerOf(incoming, deps.clientNames),
      report: (text: string) => void reports.push(text),
    };
    const outcome = await answer(method, request, call);
    const code = 'code' in outcome ? (Status[outcome.code] ?? String(outcome.code)) : 'OK';
    const ms = clock.monotonicMs() - startMs;
    metrics.duration.observe({ method, code }, ms / 1_000);
    const isRefused = code === 'UNAUTHENTICATED' || code === 'PERMISSION_DENIED';
    // What is asked by somebody who may not ask is as long as they like.
    const fields = { peer: call.peer, method, ...(isRefused ? {} : askedFor(request)), code, ms };
    const err = 'code' in outcome ? { err: outcome.message } : {};
    if (!CHANGES.has(method) && !isRefused) deps.log.debug({ ...fields, ...err }, 'answered an autoscaler call');
    else if ('code' in outcome) deps.log.warn({ ...fields, ...err }, 'refused an autoscaler call');
    else deps.log.info({ ...fields, outcome: reports.join('; ') }, 'completed an autoscaler call');
    return outcome;
  };
}

async function outcomeOf<M extends RpcName>(
  deps: AnswerDeps,
  method: M,
  request: RpcRequest<M>,
  call: IncomingCall & RpcCall,
): Promise<RpcOutcome<M>> {
  try {
    const refusal = authenticationErrorOf(call, deps.clientNames);
    if (refusal !== undefined) throw refusal;
    const unavailable = deps.unavailable();
    if (unavailable !== undefined && (unavailable.isElsewhere || !FROM_MEMORY.has(method))) {
      if (unavailable.isElsewhere) deps.drop(call);
      throw new ServerError(Status.UNAVAILABLE, unavailable.reason);
    }
    const rpc = deps.rpcs[method] as (r: RpcRequest<M>, c: RpcCall) => RpcReply<M> | Promise<RpcReply<M>>;
    const reply = await rpc.call(deps.rpcs, request, call);
    if (unavailable !== undefined && isOfNoGroup(reply)) throw new ServerError(Status.UNAVAILABLE, unavailable.reason);
    return { reply };
  } catch (err) {
    const { code, details } = errorFor(err, call.signal, deps.roleFile);
    if (code === Status.INTERNAL) deps.log.error({ method, err }, 'failed to answer an autoscaler');
    return { code, message: details };
  }
}

/** That a Node is in no group, which holds only if all Nodes were read: after a start in an outage of their cluster none was. */
function isOfNoGroup(reply: object): boolean {
  return 'nodeGroup' in reply && (reply.nodeGroup as { readonly id?: string } | undefined)?.id === '';
}

/** What a client is told of an error; `roleFile` grants what the API server may refuse. */
export function errorFor(err: unknown, signal: AbortSignal, roleFile: string): ServerError {
  if (err instanceof ServerError) return err;
  if (err instanceof GateClosedError) return new ServerError(Status.UNAVAILABLE, `nothing was changed: ${err.message}`);
  if (signal.aborted)
    return new ServerError(
      Status.DEADLINE_EXCEEDED,
      'the client no longer waits; raise grpc_timeout in its cloud-config',
    );
  if (err instanceof ApiError) {
    // Webhooks and admission policies refuse in the words of missing permissions.
    const isPermission = isForbiddenOrNotServed(err) && !/ denied (the )?request/.test(err.message);
    const remedy = isPermission ? `; apply ${roleFile}` : '';
    return new ServerError(Status.UNAVAILABLE, `the API server did not apply the change: ${err.message}${remedy}`);
  }
  return new ServerError(Status.INTERNAL, err instanceof Error ? err.message : String(err));
}

function peerOf({ certificate, address }: IncomingCall, clientNames: readonly string[] | undefined): string {
  if (clientNames === undefined) return address === 'unknown' ? 'socket' : address;
  const names = certificate === undefined ? [] : namesOf(certificate);
  return names.find((name) => clientNames.includes(name)) ?? names[0] ?? address;
}

function askedFor(request: unknown): LogFields {
  const { id, delta, nodes } = request as { id?: string; delta?: number; nodes?: readonly { name: string }[] };
  return { group: id, delta, nodes: nodes?.map(({ name }) => name) };
}
