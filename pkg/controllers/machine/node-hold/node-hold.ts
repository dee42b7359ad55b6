import { nodeNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { FORCE_DRAIN_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { fromTimestamp, toTimestamp } from '../../../base/clock/clock.ts';
import { describeProgress, isBlocked, blockReasonOf } from '../../../drain/progress-text.ts';
import type { StrategicPatch } from '../../../kube/client/patch.ts';
import type { MachineEventReason } from '../../machine-facts/events.ts';
import { describeHooks } from '../../machine-facts/hooks.ts';
import type { NodeAccess } from '../../machine-facts/node-access.ts';
import { nodeConditionOf, setCondition } from '../../machine-facts/node-condition.ts';
import { isWorthReporting, reasonFor } from '../../machine-facts/node-refusal.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext } from '../context.ts';
import type { DrainPlan } from '../drain/plan.ts';
import { nextReportInMs } from '../drain/report.ts';
import type { DrainState } from '../drain/drains.ts';
import type { NamedNode } from '../node/named-node.ts';

/** How far a hold is. `DrainLate`: the drain continues past its timeout. `DrainFailed`: it is retried. */
export type HoldStage =
  | ('InvalidValue' | 'Requested' | 'WaitingForHooks' | 'Draining' | 'DrainBlocked' | 'DrainLate' | 'DrainFailed')
  | ('Held' | 'Returning' | 'Refused' | 'Over');

export type HoldDeps = Pick<Collaborators, 'clock' | 'drains' | 'metrics' | 'reportedOnce'>;
type Running = Extract<DrainState, { kind: 'running' }>;
type Voice = Required<Pick<HoldKind, 'say' | 'report'>>;
type Turn = readonly [event: MachineEventReason, log?: string];
/** Reports what the API server does not allow, and sees to another attempt; the reason in words. Undefined: the error is thrown. */
export type Refused<D extends HoldDeps> = (hold: NodeHold<D>, err: unknown) => string | undefined;

const REFUSED_RETRY_MS = 30_000;

/** Reports a change that the API server refuses of the Node, once for each reason it gives, and sees to another attempt. */
export function refusedChange<D extends HoldDeps>(event: MachineEventReason, purpose: string): Refused<D> {
  return (hold, err) => {
    if (!isWorthReporting(err)) return undefined;
    const { machine, pass, log } = hold.ctx;
    const name = nodeNameOf(machine);
    const why = reasonFor(err, name);
    pass.alsoAfter(REFUSED_RETRY_MS, 'the API server to accept a change of the Node');
    const text = `The API server refuses a change of Node ${name}: ${why}`;
    if (hold.reportOnce(event, text, `${event} ${purpose} ${why} ${hold.since}`))
      log.warn({ err }, `could not change a node for ${purpose}`);
    return why;
  };
}

/** A reason to keep a Node without pods while its machine lives; its step decides when that begins and ends. */
export interface HoldKind<D extends HoldDeps = HoldDeps> extends Pick<DrainPlan, 'barrier'> {
  readonly purpose: Exclude<DrainPlan['purpose'], 'deletion'>;
  /** Annotations that record it on the Machine, the first with the time of its beginning, and what is reported of that. */
  readonly annotations?: readonly string[];
  readonly begun?: Turn;
  readonly ended?: Turn;
  /** Since when the time of its drain counts; its beginning, unless it is given. */
  readonly since?: (hold: NodeHold<D>) => string | null | undefined;
  readonly forceRule: (hold: NodeHold<D>) => DrainPlan['forceRule'];
  /** Of a drain that is not one of a machine which is kept. */
  readonly terms?: (hold: NodeHold<D>) => Pick<DrainPlan, 'forcedBy' | 'isWanted' | 'mayBegin'>;
  /** Reported while it waits for another drain of the Node; without it, that one is aborted. */
  readonly waitsForOthers?: string;
  /** Annotations that keep the autoscaler from the Node; undefined: nothing is missing. */
  readonly scaleDownHold?: (node: Node) => Readonly<Record<string, string>> | undefined;
  /** Reports how far it is, on the Node or on the Machine. */
  readonly say: (hold: NodeHold<D>, stage: HoldStage, text: string) => void | Promise<void>;
  readonly report?: (hold: NodeHold<D>, drain: Running, stage: HoldStage) => void | Promise<void>;
  readonly refused?: Refused<D>;
}

/** A hold in one pass over its machine. While there is no Node to hold, `on` is undefined, and nothing is done to one. */
export class NodeHold<D extends HoldDeps = HoldDeps> {
  readonly kind: HoldKind<D>;
  readonly deps: D;
  readonly ctx: MachineContext;
  readonly on: { readonly nodes: NodeAccess; readonly node: Node } | undefined;

  constructor(kind: HoldKind<D>, deps: D, ctx: MachineContext, node: NamedNode) {
    this.kind = kind;
    this.deps = deps;
    this.ctx = ctx;
    this.on = ctx.nodes !== undefined && typeof node === 'object' ? { nodes: ctx.nodes, node } : undefined;
  }

  get since(): string | null | undefined {
    const { since, annotations: [recorded = ''] = [] } = this.kind;
    return since === undefined ? this.ctx.machine.metadata.annotations?.[recorded] : since(this);
  }

  /** Records that it has begun, before its Node is touched: whoever takes over knows what to undo. */
  begin(text: string): void {
    const { annotations: [since] = [], begun } = this.kind;
    if (since === undefined) return;
    this.annotate({ [since]: toTimestamp(this.deps.clock.now()) });
    if (this.ctx.observed.metadata.annotations?.[since] === undefined) this.#turn(begun, text);
  }

  /** Waits until the owners of hooks have removed them: nothing is drained meanwhile. */
  async awaitHooks(hooks: readonly string[]): Promise<void> {
    const { purpose } = this.kind;
    this.deps.drains.end(this.ctx, purpose);
    const text = describeHooks(hooks);
    this.reportOnce('WaitingForHooks', text, `${purpose} ${text} ${this.since}`);
    await this.say('WaitingForHooks', text);
  }

  /** Brings the drain of the Node forward by one pass, and reports how it is; undefined while another one has not ended. */
  async empty(): Promise<DrainState | undefined> {
    const { kind, deps, ctx } = this;
    if (kind.waitsForOthers !== undefined && deps.drains.isTaken(ctx, kind.purpose)) {
      await this.say('Requested', kind.waitsForOthers);
      return undefined;
    }
    await this.#holdOffAutoscaler();
    const state = await this.#drain();
    if (state?.kind === 'running') await kind.report?.(this, state, stageOf(state));
    if (state?.kind === 'failed') {
      if (state.isNews) ctx.pass.event('DrainFailed', state.text);
      await this.say('DrainFailed', state.text);
    }
    return state;
  }

  /** Keeps the Node as it is, with a correction that it may need, and says so. */
  async keep(text: string, correct?: () => Promise<unknown>): Promise<void> {
    await this.#holdOffAutoscaler();
    if (correct !== undefined) await this.attempt(correct);
    await this.say('Held', text);
  }

  /**
   * Makes the Node as it was before, and then says that it is over, or why that is refused, which it resolves with. That comes last: it also
   * makes requests of an aborted drain fail that were sent and not answered yet. `isSaid`: whether the Node, if it tells of that, could be told.
   */
  async giveBack(
    release: () => Promise<unknown>,
    over = '',
  ): Promise<{ refused: string | undefined; isSaid: boolean }> {
    const refused = await this.attempt(release);
    const unsaid = await this.say(refused === undefined ? 'Over' : 'Refused', refused ?? over);
    return { refused, isSaid: unsaid === undefined };
  }

  /** Forgets it when everything is as before. */
  end(text: string): void {
    for (const key of this.kind.annotations ?? []) delete this.ctx.machine.metadata.annotations?.[key];
    this.#turn(this.kind.ended, text);
  }

  /** Resolves with the reason if the API server refuses it. */
  async say(stage: HoldStage, text: string): Promise<string | undefined> {
    return await this.attempt(async () => this.kind.say(this, stage, text));
  }

  /** Does something that may be refused, which delays nothing else; resolves with the reason. */
  async attempt(
    write: () => Promise<unknown>,
    refused: Refused<D> | undefined = this.kind.refused,
  ): Promise<string | undefined> {
    try {
      await write();
      return undefined;
    } catch (err) {
      const why = refused?.(this, err);
      if (why === undefined) throw err;
      return why;
    }
  }

  /** An Event for each `what` of a machine; false: it is not the first. */
  reportOnce(event: MachineEventReason, text: string, what = text): boolean {
    const { machine, pass } = this.ctx;
    const isNew = this.deps.reportedOnce.isNew(machine.metadata.uid, what);
    if (isNew) pass.event(event, text);
    return isNew;
  }

  annotate(annotations: Readonly<Record<string, string>>): void {
    const { metadata } = this.ctx.machine;
    metadata.annotations = { ...metadata.annotations, ...annotations };
  }

  /** Changes the Node as it is at this moment, not as the cache has it; the change fails if somebody else is faster. */
  async change(changeOf: (live: Node) => StrategicPatch<Node> | undefined): Promise<boolean> {
    const { on, ctx } = this;
    const live = await on?.nodes.read(on.node.metadata.name, ctx.signal);
    if (live === undefined || live.metadata.uid !== on?.node.metadata.uid) return false;
    const change = changeOf(live);
    if (change === undefined) return false;
    const { resourceVersion } = live.metadata;
    await on.nodes.patch(live, { ...change, metadata: { ...change.metadata, resourceVersion } }, ctx.signal);
    return true;
  }

  #turn([event, line]: Turn | readonly [] = [], text: string): void {
    const { pass, log } = this.ctx;
    if (event !== undefined) pass.event(event, text, 'record');
    if (line !== undefined) pass.afterWrite(() => log.info({}, line), 'record');
  }

  async #drain(): Promise<DrainState | undefined> {
    const { kind, deps, ctx, on } = this;
    if (on === undefined) return undefined;
    const { purpose, barrier, terms = termsOfKept } = kind;
    const startMs = fromTimestamp(this.since) ?? deps.clock.now();
    const plan = { ...on, purpose, barrier, startMs, forceRule: kind.forceRule(this), ...terms(this) };
    // Forced or not, one that fails is never taken for done.
    const state = await deps.drains.advance(ctx, { ...plan, onForcedFailure: 'retry' });
    if (kind.terms === undefined && state.kind === 'drained' && state.isNews) this.#reportDrained(state);
    return state;
  }

  #reportDrained({ isForced, tookMs }: Extract<DrainState, { kind: 'drained' }>): void {
    const { machine, pass } = this.ctx;
    const how = isForced ? 'by force ' : '';
    pass.event('Drained', `The Node was drained ${how}in ${Math.round(tookMs / 1_000)} s; the machine is kept.`);
    pass.afterWrite(() => this.deps.metrics.drained(machine, tookMs, isForced));
  }

  async #holdOffAutoscaler(): Promise<void> {
    const { kind, on, ctx } = this;
    const annotations = on && kind.scaleDownHold?.(on.node);
    if (annotations === undefined) return;
    await this.attempt(async () => on?.nodes.patch(on.node, { metadata: { annotations } }, ctx.signal));
  }
}

/** Of the drain of a machine that is kept. */
function termsOfKept({ ctx: { machine } }: Pick<NodeHold, 'ctx'>): Pick<DrainPlan, 'forcedBy' | 'isWanted'> {
  const isAsked = machine.metadata.labels?.[FORCE_DRAIN_LABEL] === 'True';
  return {
    forcedBy: isAsked ? `the Machine has label ${FORCE_DRAIN_LABEL}` : undefined,
    isWanted: (live) => !isBeingDeleted(live),
  };
}

function stageOf({ isLate, record }: Running): HoldStage {
  if (isLate) return 'DrainLate';
  return record?.progress !== undefined && isBlocked(record.progress) ? 'DrainBlocked' : 'Draining';
}

/** Reasons of a condition that say that there is a drain. */
const OF_DRAINS: ReadonlySet<string | undefined> = new Set<HoldStage>(['Draining', 'DrainBlocked', 'DrainFailed']);

/** What reports a hold by a condition of its Node, which is True with `Held`; a reason is the stage, unless it is given. */
export const onNode = (type: string, reasons: Partial<Record<HoldStage, string>>): Voice => ({
  async say({ ctx, deps, on }, stage, message) {
    const status = stage === 'Held' ? 'True' : 'False';
    const condition = { type, status, reason: reasons[stage] ?? stage, message } as const;
    if (on !== undefined) await setCondition(deps, ctx, on.nodes, on.node, condition);
  },

  /** A drain that failed has failed until the next one gets somewhere. */
  async report(hold, { record }) {
    const { on, deps, ctx } = hold;
    if (record?.progress === undefined) {
      const { reason } = (on && nodeConditionOf(on.node, type)) ?? {};
      const text = `Node ${on?.node.metadata.name} is cordoned, and its pods are being evicted.`;
      if (!OF_DRAINS.has(reason)) await hold.say('Draining', text);
      return;
    }
    const nowMs = deps.clock.monotonicMs();
    const waitMs = nextReportInMs(record, nowMs);
    if (waitMs > 0) return ctx.pass.alsoAfter(waitMs, 'the pods to leave');
    const shown = isBlocked(record.progress) ? 'DrainBlocked' : 'Draining';
    await hold.say(shown, describeProgress(record.progress));
    Object.assign(record, { reportedReason: blockReasonOf(record.progress), reportedMs: nowMs });
  },
});
