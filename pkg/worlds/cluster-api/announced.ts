import { contractOf, definitionNameOf, pluralOf, type ContractReference } from './api/contract.ts';
import { membersOf, nonEmptyText } from '../../apis/members.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import type { KubeObject } from '../../apis/meta.ts';
import { isQuantity } from '../../apis/quantity.ts';
import type { AnnouncedTemplate, ReadAnnounced } from '../../controllers/announced-template.ts';
import { ignoreNotFound } from '../../kube/client/errors.ts';
import { customResourceDefinitions, providerResource } from '../../kube/client/resource.ts';

/** The template of Cluster API that a class names; undefined for classes of other providers. */
export function templateOf({ providerSpec }: Pick<MachineClass, 'providerSpec'>): ContractReference | undefined {
  const { apiGroup, kind, name } = membersOf(membersOf(providerSpec)['infrastructureRef']);
  const [group, ofKind, called] = [nonEmptyText(apiGroup), nonEmptyText(kind), nonEmptyText(name)];
  return group === undefined || ofKind === undefined || called === undefined
    ? undefined
    : { apiGroup: group, kind: ofKind, name: called };
}

/** What a template says in `status.capacity` and `status.nodeInfo`, for pools that grow from nothing; undefined: nothing. */
export function announcedIn(template: KubeObject): AnnouncedTemplate | undefined {
  const status = membersOf(membersOf(template)['status']);
  const capacity = Object.entries(membersOf(status['capacity'])).flatMap(([resource, quantity]) =>
    (typeof quantity === 'string' || typeof quantity === 'number') && isQuantity(quantity)
      ? [[resource, quantity] as const]
      : [],
  );
  if (capacity.length === 0) return undefined;
  const { architecture, operatingSystem } = membersOf(status['nodeInfo']);
  const known = nonEmptyText(architecture);
  return {
    nodeTemplate: {
      capacity: Object.fromEntries(capacity),
      instanceType: '',
      region: '',
      zone: '',
      ...(known !== undefined && { architecture: known }),
    },
    os: nonEmptyText(operatingSystem),
  };
}

/** Reads the template that a class names, live, in the version that its definition names. Throws ApiError. */
export const readAnnounced: ReadAnnounced = async (reader, machineClass, signal) => {
  const reference = templateOf(machineClass);
  if (reference === undefined) return undefined;
  // By a list: whoever watches definitions may do that.
  const fieldSelector = `metadata.name=${definitionNameOf(reference)}`;
  const { items } = await reader.list(customResourceDefinitions, { fieldSelector, signal });
  const contract = contractOf(items[0]?.metadata.labels);
  if (contract === undefined) return undefined;
  const { apiGroup: group, kind, name } = reference;
  const resource = providerResource({ group, version: contract.version, plural: pluralOf(kind), kind });
  const { namespace = '' } = machineClass.metadata;
  const template = await reader.get(resource, { namespace, name }, { signal }).catch(ignoreNotFound);
  return template && announcedIn(template);
};
