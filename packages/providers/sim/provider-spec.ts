import { atLeast, fields, flag, text, texts } from '../../../pkg/drivers/spec-fields.ts';

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

/** Checks a provider spec. Throws InvalidArgument that names the member; retrying cannot help until the class changes. */
export function parseProviderSpec(value: unknown): SimProviderSpec {
  const spec = fields(value ?? {}, 'providerSpec', ['size', 'zone', 'latencyMs', 'initialize', 'join', 'nodeLabels']);
  const latency = fields(spec['latencyMs'] ?? {}, 'providerSpec.latencyMs', ['create', 'join']);
  return {
    size: text(spec['size'] ?? 'small', 'providerSpec.size'),
    zone: text(spec['zone'] ?? 'zone-1', 'providerSpec.zone'),
    latencyMs: Object.fromEntries(
      Object.entries(latency).map(([name, ms]) => [
        name,
        atLeast(0, ms, `providerSpec.latencyMs.${name}`, 'milliseconds'),
      ]),
    ),
    initialize: flag(spec['initialize'] ?? false, 'providerSpec.initialize'),
    join: flag(spec['join'] ?? true, 'providerSpec.join'),
    nodeLabels: texts(spec['nodeLabels'] ?? {}, 'providerSpec.nodeLabels'),
  };
}
