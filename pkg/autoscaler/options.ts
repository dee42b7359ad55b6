import { parseDurationNs } from '../apis/duration.ts';
import type { MachineDeployment } from '../apis/machine/v1alpha1/machine-deployment.ts';
import type { NodeGroupAutoscalingOptions } from './gen/clusterautoscaler/cloudprovider/v1/externalgrpc/cloud_provider.ts';
import type { Duration } from './gen/google/protobuf/duration.ts';

/** Where Gardener's fork reads settings of a node group: on its MachineDeployment. */
const PREFIX = 'autoscaler.gardener.cloud/';
const NS_PER_SECOND = 1_000_000_000n;
const NS_PER_MS = 1_000_000n;

const PROVISION = {
  key: 'max-node-provision-time',
  embedded: 'embeddedMaxNodeProvision',
  plain: 'maxNodeProvision',
} as const;

/** Durations, by annotation: where a reply has them for either era. */
const DURATIONS = [
  { key: 'scale-down-unneeded-time', embedded: 'embeddedScaleDownUnneeded', plain: 'scaleDownUnneeded' },
  { key: 'scale-down-unready-time', embedded: 'embeddedScaleDownUnready', plain: 'scaleDownUnready' },
  PROVISION,
] as const;

const THRESHOLDS = [
  { key: 'scale-down-utilization-threshold', field: 'scaleDownUtilizationThreshold' },
  { key: 'scale-down-gpu-utilization-threshold', field: 'scaleDownGpuUtilizationThreshold' },
] as const;

export interface OwnOptions {
  /** By annotation without prefix. */
  readonly thresholds: ReadonlyMap<string, number>;
  readonly durationsNs: ReadonlyMap<string, bigint>;
  /** One sentence for each annotation that is not obeyed. */
  readonly faults: readonly string[];
}

/** Reads the annotations; a bad value is left out, and told. */
export function ownOptions({ metadata }: Pick<MachineDeployment, 'metadata'>): OwnOptions {
  const { annotations = {} } = metadata;
  const faults: string[] = [];
  const read = <T>(key: string, parse: (text: string) => T | undefined, allowed: string): [string, T][] => {
    const text = annotations[`${PREFIX}${key}`];
    if (text === undefined) return [];
    const value = parse(text);
    if (value !== undefined) return [[key, value]];
    faults.push(
      `annotation ${PREFIX}${key}: ${JSON.stringify(text)} is not valid, must be ${allowed}; using the default`,
    );
    return [];
  };
  return {
    thresholds: new Map(THRESHOLDS.flatMap(({ key }) => read(key, parseThreshold, 'a number from 0 to 1'))),
    durationsNs: new Map(DURATIONS.flatMap(({ key }) => read(key, parseDelay, 'a duration such as 10m'))),
    faults,
  };
}

/**
 * What replaces the client's `defaults`: these, with the settings of the group over them, durations in the form of either era. A reply replaces
 * all of them, also those that it does not have, by zero: undefined when the group has no settings, or when the client has
 * not said all defaults, so that it goes on with its own.
 */
export function optionsReply(
  own: OwnOptions,
  defaults: NodeGroupAutoscalingOptions | undefined,
): NodeGroupAutoscalingOptions | undefined {
  if (defaults === undefined || own.thresholds.size + own.durationsNs.size === 0) return undefined;
  const options = { ...defaults };
  for (const { key, field } of THRESHOLDS) options[field] = own.thresholds.get(key) ?? defaults[field];
  for (const { key, embedded, plain } of DURATIONS) {
    const ns = own.durationsNs.get(key) ?? fromPlain(defaults[plain]) ?? defaults[embedded]?.nanoseconds;
    if (ns === undefined) return undefined;
    options[embedded] = { nanoseconds: ns };
    options[plain] = { seconds: ns / NS_PER_SECOND, nanos: Number(ns % NS_PER_SECOND) };
  }
  return options;
}

/** How long a client waits for the Node of a new Machine: by the settings of the group, or else by its defaults; undefined when it has not said. */
export function provisionMsOf(own: OwnOptions, defaults: NodeGroupAutoscalingOptions | undefined): number | undefined {
  const { key, plain, embedded } = PROVISION;
  const ns = own.durationsNs.get(key) ?? fromPlain(defaults?.[plain]) ?? defaults?.[embedded]?.nanoseconds;
  return ns === undefined ? undefined : Number(ns / NS_PER_MS);
}

function parseThreshold(text: string): number | undefined {
  const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
  return value >= 0 && value <= 1 ? value : undefined;
}

function parseDelay(text: string): bigint | undefined {
  const ns = parseDurationNs(text);
  return ns === undefined || ns < 0n ? undefined : ns;
}

function fromPlain(duration: Duration | undefined): bigint | undefined {
  return duration && duration.seconds * NS_PER_SECOND + BigInt(duration.nanos);
}
