import { atLeast, fields, invalid, text, texts } from '../../../pkg/drivers/spec-fields.ts';

/** `providerSpec` of a MachineClass for local machines. Every member is optional. */
export interface LocalProviderSpec {
  /** Labels that the Node registers with; only such that a kubelet may set itself. */
  readonly nodeLabels: Readonly<Record<string, string>>;
  /** Taints that the Node registers with, as `key=value:Effect` or `key:Effect`. */
  readonly taints: readonly string[];
  /** Pods that the Node takes; 110 by default. */
  readonly maxPods: number;
}

const TAINT = /^[^=:,]+(=[^=:,]*)?:(NoSchedule|PreferNoSchedule|NoExecute)$/;

/** Checks a provider spec. Throws InvalidArgument that names the member; retrying cannot help until the class changes. */
export function parseProviderSpec(value: unknown): LocalProviderSpec {
  const spec = fields(value ?? {}, 'providerSpec', ['nodeLabels', 'taints', 'maxPods']);
  return {
    nodeLabels: texts(spec['nodeLabels'] ?? {}, 'providerSpec.nodeLabels'),
    taints: parseTaints(spec['taints'] ?? []),
    maxPods: Math.floor(atLeast(1, spec['maxPods'] ?? 110, 'providerSpec.maxPods', 'pods')),
  };
}

function parseTaints(value: unknown): readonly string[] {
  if (!Array.isArray(value)) throw invalid('providerSpec.taints: must be a list');
  return value.map((member: unknown, i) => {
    const taint = text(member, `providerSpec.taints[${i}]`);
    if (!TAINT.test(taint)) throw invalid(`providerSpec.taints[${i}]: must have the form key=value:NoSchedule`);
    return taint;
  });
}
