import { MADE_FOR_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import { isBeingDeleted, keyOf, refOf, type KubeObject } from '../../../apis/meta.ts';
import { REGION_LABEL } from '../api/machine.ts';
import { CLASS_INDEX } from '../../../operator/indexes/class-index.ts';
import type { New } from '../../../kube/client/client.ts';
import { ignoreNotFound, ignoreAlreadyExists } from '../../../kube/client/errors.ts';
import { configMaps, machineClasses, secrets } from '../../../kube/client/resource.ts';
import { NEEDED_SETTINGS, readClusterSettings, type ClusterSettings } from './cluster-settings.ts';
import type { Read, DesiredServer } from './provider-value.ts';
import type { Problem } from './field-reader.ts';
import { isRequestRejected } from './front-end.ts';
import { classFor, clusterNameOf, MADE_FOR } from './desired-machine.ts';
import type { MirantisCollaborators } from './collaborators.ts';

type Deps = Pick<
  MirantisCollaborators,
  'classes' | 'machines' | 'machineSets' | 'machineDeployments' | 'reader' | 'writer' | 'log'
>;

/**
 * The MachineClasses that are made of what Machines and pools say and of the settings of their Cluster. Only one pass may run at a time:
 * between making a class and what uses it no other one removes it as unused.
 */
export class GeneratedClasses {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** The class that `holder`, a Machine or a pool, asks for. It is not made yet. */
  async usedBy(holder: KubeObject, server: DesiredServer, signal: AbortSignal): Promise<Read<New<MachineClass>>> {
    const settings = await this.#settingsOf(holder, signal);
    if (settings.value === undefined) return settings;
    const region = holder.metadata.labels?.[REGION_LABEL];
    const { labelledRegion } = settings.value;
    if (region !== undefined && labelledRegion !== undefined && region !== labelledRegion) {
      return { problems: [`metadata.labels.${REGION_LABEL}: must be ${labelledRegion}, the region of the Cluster`] };
    }
    return { value: classFor(holder, server, settings.value) };
  }

  /** Makes the class, unless it is there; the problems say why it cannot be used. */
  async provide(wanted: New<MachineClass>, signal: AbortSignal): Promise<readonly Problem[]> {
    const { name, namespace = '' } = wanted.metadata;
    const known = this.#deps.classes.get(`${namespace}/${name}`);
    if (known !== undefined) return isBeingDeleted(known) ? [`MachineClass ${name}: is being deleted, wait`] : [];
    await this.#deps.writer.create('create', machineClasses, wanted, { signal }).catch(ignoreAlreadyExists);
    return [];
  }

  /**
   * Deletes the classes of the namespace that were made here and that nothing uses any more. One that must not be deleted holds up neither others
   * nor what was made with it: the next pass of the namespace tries again.
   */
  async removeUnused(namespace: string | undefined, signal: AbortSignal): Promise<void> {
    const { classes, machines, writer, log } = this.#deps;
    const made = classes
      .list()
      .filter(({ metadata }) => metadata.labels?.[MADE_FOR_LABEL] === MADE_FOR && metadata.namespace === namespace)
      .filter((one) => !isBeingDeleted(one) && machines.byIndex(CLASS_INDEX, keyOf(one)).length === 0);
    if (made.length === 0) return;
    const named = this.#namedByTemplates(namespace);
    for (const one of made.filter(({ metadata }) => !named.has(metadata.name))) {
      const { uid, resourceVersion } = one.metadata;
      await writer
        .delete('destroy', machineClasses, refOf(one), { uid, resourceVersion }, { signal })
        .catch(ignoreNotFound)
        .catch((err: unknown) => {
          if (!isRequestRejected(err)) throw err;
          log.warn({ machineClass: keyOf(one), err }, 'an unused machine class cannot be deleted');
        });
    }
  }

  /** Names of the classes that Machines may still be made with: pools of no replicas, and earlier templates, have none now. */
  #namedByTemplates(namespace: string | undefined): ReadonlySet<string | undefined> {
    const { machineSets, machineDeployments } = this.#deps;
    const owners = [...machineSets.list(), ...machineDeployments.list()];
    return new Set(
      owners
        .filter(({ metadata }) => metadata.namespace === namespace)
        .map(({ spec }) => spec.template?.spec?.class?.name),
    );
  }

  /** Settings of the Cluster, from the ConfigMap of its name; the Secret of its name has to be there. */
  async #settingsOf(holder: KubeObject, signal: AbortSignal): Promise<Read<ClusterSettings>> {
    const { reader } = this.#deps;
    const { namespace = '' } = holder.metadata;
    const name = clusterNameOf(holder);
    if (name === '')
      return { problems: ['metadata.labels.cluster.sigs.k8s.io/cluster-name: must be the name of the Cluster'] };
    const ref = { namespace, name };
    const [settings, secret] = await Promise.all([
      reader.get(configMaps, ref, { signal }).catch(ignoreNotFound),
      reader.get(secrets, ref, { signal, metadataOnly: true }).catch(ignoreNotFound),
    ]);
    const missing = [
      ...(settings === undefined
        ? [`ConfigMap ${name}: missing, create it with ${NEEDED_SETTINGS.map((keys) => keys.join(' or ')).join(', ')}`]
        : []),
      ...(secret === undefined
        ? [`Secret ${name}: missing, create it with the credentials of the cloud and userData`]
        : []),
    ];
    const read = settings && readClusterSettings(settings);
    if (read?.value !== undefined && missing.length === 0) return read;
    return { problems: [...missing, ...(read?.problems ?? [])] };
  }
}
