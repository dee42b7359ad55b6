import type { BootstrapReport } from '../api/bootstrap.ts';
import type { ClusterAPICondition } from '../api/condition.ts';
import type { InfrastructureReport } from '../api/infrastructure.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { DriverError, type DriverCode } from '../../../driver/error.ts';

export interface Reported<Report> {
  /** For people: `SimMachine m-1`. */
  readonly what: string;
  readonly report: Report;
}

export interface Unprovisioned {
  readonly machine: ClusterAPIMachine;
  readonly infrastructure: Reported<InfrastructureReport> | undefined;
  readonly bootstrap: Reported<BootstrapReport> | undefined;
  readonly givenSecret: string | undefined;
  /** Time, in ms since the epoch. */
  readonly nowMs: number;
}

export const GIVEN_SECRET_PATH = 'providerSpec.bootstrap.dataSecretName';

/** A Machine that nobody has looked at for so long is looked after by nobody. */
const NOTICED_WITHIN_MS = 60_000;

/** Reasons of Cluster API that say more than that something is wrong. */
const CODES: Readonly<Record<string, DriverCode>> = {
  InsufficientResources: 'ResourceExhausted',
  InvalidConfiguration: 'InvalidArgument',
};

/** Reasons of condition BootstrapConfigReady: no infrastructure comes of a Machine while its Secret is so. */
const OF_DATA_SECRETS: readonly string[] = ['DataSecretMissing', 'DataSecretEmpty'];

/** Conditions of a Machine that say why nothing comes of it, and in which status. */
const HOLDING = [
  { type: 'Paused', status: 'True' },
  { type: 'BootstrapConfigReady', status: 'False' },
  { type: 'InfrastructureReady', status: 'False' },
  { type: 'BootstrapConfigReady', status: 'Unknown' },
  { type: 'InfrastructureReady', status: 'Unknown' },
] as const;

/**
 * Why there is no VM yet. Uninitialized: its creation goes on.
 *
 * | what says it                                       | code                                                                     |
 * |----------------------------------------------------|--------------------------------------------------------------------------|
 * | what its data Secret lacks                         | InvalidArgument: whatever the provider says follows from that            |
 * | failureReason, or condition Ready that is not True | of InsufficientResources ResourceExhausted, of InvalidConfiguration      |
 * |                                                    | InvalidArgument; other failures Internal, other conditions Uninitialized |
 * | condition Paused of the Machine                    | Aborted                                                                  |
 * | other conditions of it                             | Uninitialized                                                            |
 * | nothing                                            | Uninitialized, and Aborted after a minute                                |
 */
export function unprovisioned(known: Unprovisioned): DriverError {
  const { machine, infrastructure, bootstrap, nowMs } = known;
  const lack = lackOfDataSecret(known);
  if (lack !== undefined) return new DriverError('InvalidArgument', lack);
  const told = [infrastructure, bootstrap].filter((one) => one !== undefined);
  for (const { what, report } of told) {
    if (report.failure === undefined) continue;
    const { reason, message } = report.failure;
    return new DriverError(CODES[reason] ?? 'Internal', `${what} has failed: ${words(reason, message)}`);
  }
  for (const { what, report } of told) {
    const { ready } = report;
    if (ready === undefined || ready.status === 'True') continue;
    const code = CODES[ready.reason] ?? 'Uninitialized';
    return new DriverError(code, `${what} is not ready: ${words(ready.reason, ready.message)}`);
  }
  const { name, creationTimestamp } = machine.metadata;
  const ageMs = nowMs - (fromTimestamp(creationTimestamp) ?? nowMs);
  const isIgnored = isUnseen(machine) && ageMs > NOTICED_WITHIN_MS;
  const code = isPaused(machine) || isIgnored ? 'Aborted' : 'Uninitialized';
  return new DriverError(code, `Machine ${name} is not provisioned yet: ${heldBy(machine, isIgnored)}`);
}

function lackOfDataSecret({ machine: { metadata, spec, status }, givenSecret }: Unprovisioned): string | undefined {
  const told = status?.conditions?.find(
    ({ type, status: value, reason }) =>
      type === 'BootstrapConfigReady' && value === 'False' && OF_DATA_SECRETS.includes(reason),
  );
  if (told === undefined) return undefined;
  const isGiven = givenSecret !== undefined && spec?.bootstrap?.dataSecretName === givenSecret;
  return `${isGiven ? GIVEN_SECRET_PATH : `Machine ${metadata.name}`}: ${told.message}`;
}

function isPaused({ status }: ClusterAPIMachine): boolean {
  return status?.conditions?.some(({ type, status: value }) => type === 'Paused' && value === 'True') === true;
}

function isUnseen({ status }: ClusterAPIMachine): boolean {
  return (status?.conditions ?? []).length === 0;
}

/** What a Machine that is being deleted waits for, in its own words; of one that is paused, or has no Cluster, nobody says anything else. */
export function deletionText({ status }: ClusterAPIMachine): string {
  const { conditions = [] } = status ?? {};
  const said = (wanted: string, is: string): ClusterAPICondition | undefined =>
    conditions.find(({ type, status: one }) => type === wanted && one === is);
  const why = said('Paused', 'True') ?? said('Deleting', 'True') ?? said('Ready', 'False');
  return why === undefined ? '' : `: ${words(why.reason, why.message)}`;
}

function heldBy(machine: ClusterAPIMachine, isIgnored: boolean): string {
  const { conditions = [] } = machine.status ?? {};
  if (isIgnored) {
    return 'no controller has reconciled it; check that Cluster API is running, or a manager with --controllers=*,cluster-api, its --namespace, and a --cluster-api-watch-filter that matches';
  }
  if (isUnseen(machine)) return 'waiting for the controller of Cluster API to reconcile it';
  const holding = HOLDING.map(({ type, status: wrong }) =>
    conditions.find((one: ClusterAPICondition) => one.type === type && one.status === wrong),
  ).find((one) => one !== undefined);
  return holding === undefined
    ? 'its infrastructure has not reported a provider ID'
    : `${holding.type} is ${holding.status}: ${words(holding.reason, holding.message)}`;
}

function words(reason: string, message: string): string {
  return [reason, message].filter((part) => part !== '').join(': ');
}
