import { NODE_LABEL } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import { controllerOf } from '../../../pkg/apis/meta.ts';
import type { Event } from '../../../pkg/apis/wire.ts';
import type { DescribedCell } from './described-cell.ts';
import {
  describedCondition,
  eventsOf,
  type DescribedCondition,
  type DescribedEvent,
} from '../../../pkg/fleet/describe/described.ts';
import { explain } from '../../../pkg/controllers/machine/explain/explain.ts';
import { optionalMember } from '../../../pkg/apis/optional-member.ts';
import { explanationOf, type DescribedExplanation } from '../../../pkg/fleet/describe/described-explanation.ts';
import type { MachineWork } from '../../../pkg/fleet/machine-work.ts';

/** What `machinist describe machine` tells; printed as it is with `-o json`. */
export interface Description extends DescribedExplanation {
  /** Absent where no process of the manager answered, or none does anything about it. */
  readonly work?: MachineWork;
  readonly cell?: DescribedCell;
  readonly name: string;
  readonly namespace: string;
  readonly phase: string;
  readonly deletionTimestamp?: string;
  readonly providerID?: string;
  readonly node?: string;
  readonly machineClass?: string;
  readonly owner?: string;
  readonly lastOperation?: {
    readonly type?: string;
    readonly state?: string;
    readonly errorCode?: string;
    readonly at?: string;
  };
  readonly conditions: readonly DescribedCondition[];
  readonly nodeConditions: readonly DescribedCondition[];
  /** Oldest first. */
  readonly events: readonly DescribedEvent[];
}

/**
 * Describes a Machine with its Events, as they were read at `nowMs`. `outage`: what its MachineDeployment says of a cluster that
 * does not answer; `work`: what the manager does about it; `cell`: what is wrong with the cell that its namespace is.
 */
export function describe(
  machine: Machine,
  events: readonly Event[],
  nowMs: number,
  {
    outage,
    work,
    cell,
  }: {
    readonly outage?: string | undefined;
    readonly work?: MachineWork | undefined;
    readonly cell?: DescribedCell | undefined;
  } = {},
): Description {
  const { metadata, spec, status } = machine;
  const explanation = explain(machine, nowMs, outage);
  const { type, state, errorCode, lastUpdateTime } = status?.lastOperation ?? {};
  const owner = controllerOf(machine);
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    phase: explanation.phase,
    ...explanationOf(explanation, nowMs),
    ...(work !== undefined && { work }),
    ...(cell !== undefined && { cell }),
    ...optionalMember('deletionTimestamp', metadata.deletionTimestamp),
    ...optionalMember('providerID', spec?.providerID),
    ...optionalMember('node', metadata.labels?.[NODE_LABEL]),
    ...optionalMember('machineClass', spec?.class?.name),
    ...optionalMember('owner', owner === undefined ? undefined : `${owner.kind}/${owner.name}`),
    ...(status?.lastOperation !== undefined && {
      lastOperation: {
        ...optionalMember('type', type),
        ...optionalMember('state', state),
        ...optionalMember('errorCode', errorCode),
        ...optionalMember('at', lastUpdateTime ?? undefined),
      },
    }),
    conditions: (status?.machineConditions ?? []).map(describedCondition),
    nodeConditions: (status?.conditions ?? []).map(describedCondition),
    events: eventsOf(events),
  };
}
