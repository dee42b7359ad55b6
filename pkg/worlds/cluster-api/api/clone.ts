import type { KubeObject, OwnerReference } from '../../../apis/meta.ts';
import { membersOf, nonEmptyText } from '../../../apis/members.ts';
import { CLONED_FROM_KIND_ANNOTATION, CLONED_FROM_NAME_ANNOTATION, CLUSTER_NAME_LABEL } from './keys.ts';

export interface Template extends KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
}

export interface CloneOptions {
  readonly name: string;
  readonly clusterName: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Takes the clone along when it goes. */
  readonly owner?: OwnerReference;
}

/** An object to be created; its members are the provider's. */
export interface Clone {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels: Record<string, string>;
    readonly annotations: Record<string, string>;
    readonly ownerReferences?: OwnerReference[];
  };
  readonly spec?: unknown;
}

/** A template that is none, or an object that cannot be made of it. */
export type CloneProblem = { readonly problem: string };

const SUFFIX = 'Template';

/** The object that a template describes; or what is wrong with the template. */
export function cloneOf(template: Template, options: CloneOptions): Clone | CloneProblem {
  const { apiVersion, kind } = template;
  const { name: from, namespace = '' } = template.metadata;
  if (!kind.endsWith(SUFFIX) || kind === SUFFIX) {
    return { problem: `${kind} ${from}: the kind of a template must end in ${SUFFIX}; use the name of a template` };
  }
  const inner = membersOf(membersOf(membersOf(template)['spec'])['template']);
  if (Object.keys(inner).length === 0) return { problem: `${kind} ${from}: spec.template is empty; set it` };
  const metadata = membersOf(inner['metadata']);
  const { name, clusterName, owner } = options;
  const group = apiVersion.split('/')[0] ?? '';
  return {
    // All of it but what was of the template itself: whatever the provider adds to it one day is taken along.
    ...inner,
    apiVersion,
    kind: kind.slice(0, -SUFFIX.length),
    metadata: {
      name,
      namespace,
      labels: { ...textsOf(metadata['labels']), ...options.labels, [CLUSTER_NAME_LABEL]: clusterName },
      annotations: {
        ...textsOf(metadata['annotations']),
        ...options.annotations,
        [CLONED_FROM_NAME_ANNOTATION]: from,
        [CLONED_FROM_KIND_ANNOTATION]: `${kind}.${group}`,
      },
      ...(owner !== undefined && { ownerReferences: [owner] }),
    },
  };
}

function textsOf(value: unknown): Record<string, string> {
  const texts = Object.entries(membersOf(value)).flatMap(([key, one]) => {
    const text = one === '' ? '' : nonEmptyText(one);
    return text === undefined ? [] : [[key, text] as const];
  });
  return Object.fromEntries(texts);
}
