import { parseDuration } from '../../apis/duration.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { EFFECTIVE_CREATION_TIMEOUT_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { Config } from '../../operator/config/config.ts';
import { effectiveEvictRetries } from '../../drain/drain.ts';

/** The flags that the machine controller acts on; a Machine may override most of them. */
export type MachineSettings = Omit<Config['machine'], 'concurrency'>;

/** How long a machine may take to get a VM, and again to join: annotation, then spec, then flag. */
export function creationTimeoutMsOf({ metadata, spec }: Machine, settings: MachineSettings): number {
  const annotated = parse(metadata.annotations?.[EFFECTIVE_CREATION_TIMEOUT_ANNOTATION]);
  return annotated ?? parse(spec.creationTimeout) ?? settings.creationTimeoutMs;
}

/** How long a machine may be Unknown before it is replaced. */
export function healthTimeoutMsOf({ spec }: Machine, settings: Pick<MachineSettings, 'healthTimeoutMs'>): number {
  return parse(spec.healthTimeout) ?? settings.healthTimeoutMs;
}

/** How long a deletion waits for pods, counted from the deletionTimestamp. */
export function drainTimeoutMsOf({ spec }: Machine, settings: MachineSettings): number {
  return parse(spec.drainTimeout) ?? settings.drainTimeoutMs;
}

/** How long an update in place may take once the Node is drained. */
export function inPlaceUpdateTimeoutMsOf({ spec }: Machine, settings: MachineSettings): number {
  return parse(spec.inPlaceUpdateTimeout) ?? settings.inPlaceUpdateTimeoutMs;
}

/** How long a preservation lasts; counts when it begins. */
export function preserveTimeoutMsOf({ spec }: Machine, settings: MachineSettings): number {
  return parse(spec.machinePreserveTimeout) ?? settings.preserveTimeoutMs;
}

/** How often one pod's eviction is repeated before the pod is deleted. */
export function maxEvictRetriesOf(machine: Machine, settings: MachineSettings): number {
  const configured = machine.spec.maxEvictRetries ?? settings.maxEvictRetries;
  return effectiveEvictRetries(configured, drainTimeoutMsOf(machine, settings));
}

/** Node condition types that make this machine unhealthy unless `False`. The spec's list is taken as it is, untrimmed. */
export function watchedConditionsOf(
  { spec }: Machine,
  settings: Pick<MachineSettings, 'nodeConditions'>,
): readonly string[] {
  const { nodeConditions } = spec;
  return nodeConditions === undefined || nodeConditions === '' ? settings.nodeConditions : nodeConditions.split(',');
}

/** An absent or malformed duration lets the next source decide. */
function parse(duration: string | undefined): number | undefined {
  return duration === undefined ? undefined : parseDuration(duration);
}
