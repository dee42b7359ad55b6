import { flag, listOf, mapOf, object, type Schema, text, time } from './schema.ts';

/** The core NodeSpec, as the original embeds it. */
function nodeSpec(): Schema {
  return object('Only taints are used; the other fields of a NodeSpec are accepted and ignored.', {
    configSource: object('Ignored.', {
      configMap: object(
        'Ignored.',
        {
          kubeletConfigKey: text('Ignored.'),
          name: text('Ignored.'),
          namespace: text('Ignored.'),
          resourceVersion: text('Ignored.'),
          uid: text('Ignored.'),
        },
        { required: ['kubeletConfigKey', 'name', 'namespace'] },
      ),
    }),
    externalID: text('Ignored.'),
    podCIDR: text('Ignored.'),
    podCIDRs: listOf('Ignored.', { type: 'string' }, { 'x-kubernetes-list-type': 'set' }),
    providerID: text('Ignored.'),
    taints: listOf('Taints of the Node.', taint(), { 'x-kubernetes-list-type': 'atomic' }),
    unschedulable: flag('Ignored.'),
  });
}

function taint(): Schema {
  return object(
    'A taint, which repels Pods that do not tolerate it.',
    {
      effect: text('NoSchedule, PreferNoSchedule or NoExecute.'),
      key: text('Key of the taint.'),
      timeAdded: time('When the taint was added.'),
      value: text('Value of the taint.'),
    },
    { required: ['effect', 'key'] },
  );
}

/** What is enforced on the Node of a machine. */
export function nodeTemplate(): Schema {
  return object('Labels, annotations and taints of the Node of the machine. Changes are applied without a rollout.', {
    metadata: {
      description: 'Labels and annotations of the Node.',
      type: 'object',
      properties: {
        labels: mapOf('Labels of the Node.', { type: 'string' }),
        annotations: mapOf('Annotations of the Node.', { type: 'string' }),
      },
      'x-kubernetes-preserve-unknown-fields': true,
    },
    spec: nodeSpec(),
  });
}

/** The core NodeCondition. */
export function nodeCondition(): Schema {
  return object(
    'A condition of the Node.',
    {
      lastHeartbeatTime: time('When the condition was last reported.'),
      lastTransitionTime: time('When the status last changed.'),
      message: text('Human-readable details.'),
      reason: text('Reason of the last change, in CamelCase.'),
      status: text('True, False or Unknown.'),
      type: text('Type of the condition, such as Ready.'),
    },
    { required: ['status', 'type'] },
  );
}
