import { quantityAsNumber } from '../../../pkg/apis/quantity.ts';
import { fields, invalid, texts } from '../../../pkg/drivers/spec-fields.ts';

/** `providerSpec` of a MachineClass for machines of kwok. Every member is optional. */
export interface KwokProviderSpec {
  /** What the Node has for pods, over the class's `nodeTemplate.capacity`. */
  readonly capacity: Readonly<Record<string, string>>;
  /** Labels that the Node registers with. */
  readonly nodeLabels: Readonly<Record<string, string>>;
}

/** Checks a provider spec. Throws InvalidArgument that names the member; retrying cannot help until the class changes. */
export function parseProviderSpec(value: unknown): KwokProviderSpec {
  const spec = fields(value ?? {}, 'providerSpec', ['capacity', 'nodeLabels']);
  const capacity = texts(spec['capacity'] ?? {}, 'providerSpec.capacity');
  for (const [name, quantity] of Object.entries(capacity)) {
    if (quantityAsNumber(quantity) === undefined) {
      throw invalid(`providerSpec.capacity.${name}: must be a quantity such as 4 or 16Gi`);
    }
  }
  return { capacity, nodeLabels: texts(spec['nodeLabels'] ?? {}, 'providerSpec.nodeLabels') };
}
