import { DriverError } from '../../driver/error.ts';

/** `providerSpec` of a MachineClass for the simulated cloud. Every member is optional. */
export interface SimProviderSpec {
  /** Free text; `small` by default. */
  readonly size: string;
  /** `zone-1` by default. */
  readonly zone: string;
  /** Overrides the driver's own settings. */
  readonly latencyMs: { readonly create?: number; readonly join?: number };
  /** True: VMs are unfinished until InitializeMachine was called. */
  readonly initialize: boolean;
  /** False: VMs never become Nodes. */
  readonly join: boolean;
  /** Labels that the Node registers with. */
  readonly nodeLabels: Readonly<Record<string, string>>;
}

type Fields = Record<string, unknown>;

/** Checks a provider spec. Throws InvalidArgument that names the member; retrying cannot help until the class changes. */
export function parseProviderSpec(value: unknown): SimProviderSpec {
  const spec = record(value ?? {}, 'providerSpec');
  known(spec, 'providerSpec', ['size', 'zone', 'latencyMs', 'initialize', 'join', 'nodeLabels']);
  const latency = record(spec['latencyMs'] ?? {}, 'providerSpec.latencyMs');
  known(latency, 'providerSpec.latencyMs', ['create', 'join']);
  const labels = record(spec['nodeLabels'] ?? {}, 'providerSpec.nodeLabels');
  return {
    size: text(spec['size'] ?? 'small', 'providerSpec.size'),
    zone: text(spec['zone'] ?? 'zone-1', 'providerSpec.zone'),
    latencyMs: Object.fromEntries(
      Object.entries(latency).map(([name, ms]) => [name, duration(ms, `providerSpec.latencyMs.${name}`)]),
    ),
    initialize: flag(spec['initialize'] ?? false, 'providerSpec.initialize'),
    join: flag(spec['join'] ?? true, 'providerSpec.join'),
    nodeLabels: Object.fromEntries(
      Object.entries(labels).map(([key, label]) => [key, text(label, `providerSpec.nodeLabels.${key}`)]),
    ),
  };
}

function invalid(message: string): DriverError {
  return new DriverError('InvalidArgument', message, { terminal: true });
}

function record(value: unknown, path: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid(`${path}: must be an object`);
  return value as Fields; // narrowed above
}

function known(value: Fields, path: string, names: readonly string[]): void {
  const unknown = Object.keys(value).find((name) => !names.includes(name));
  if (unknown !== undefined) throw invalid(`${path}.${unknown}: unknown field, expected one of ${names.join(', ')}`);
}

function text(value: unknown, path: string): string {
  if (typeof value !== 'string' || value === '') throw invalid(`${path}: must be a non-empty string`);
  return value;
}

function duration(value: unknown, path: string): number {
  if (typeof value !== 'number' || !(value >= 0))
    throw invalid(`${path}: must be a number of milliseconds, at least 0`);
  return value;
}

function flag(value: unknown, path: string): boolean {
  if (typeof value !== 'boolean') throw invalid(`${path}: must be true or false`);
  return value;
}
