import { flag, listOf, mapOf, object, type Schema, text, time } from './schema.ts';

/** The core NodeSpec, as the original embeds it. */
function nodeSpec(): Schema {
  return object('Only taints are used; the other members of a NodeSpec are accepted and ignored.', {
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
    taints: listOf('Taints that the Node is kept with.', taint(), { 'x-kubernetes-list-type': 'atomic' }),
    unschedulable: flag('Ignored.'),
  });
}

function taint(): Schema {
  return object(
    'Keeps Pods that do not tolerate it away from the Node.',
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
  return object(
    'Labels, annotations and taints that the Node of the machine is kept with. A change needs no rollout.',
    {
      metadata: {
        description: 'Labels and annotations that the Node is kept with.',
        type: 'object',
        properties: {
          labels: mapOf('Labels that the Node is kept with.', { type: 'string' }),
          annotations: mapOf('Annotations that the Node is kept with.', { type: 'string' }),
        },
        'x-kubernetes-preserve-unknown-fields': true,
      },
      spec: nodeSpec(),
    },
  );
}

/** The core NodeCondition. */
export function nodeCondition(): Schema {
  return object(
    'A condition of the Node.',
    {
      lastHeartbeatTime: time('When the condition was last reported.'),
      lastTransitionTime: time('When the status last changed.'),
      message: text('Details, for humans.'),
      reason: text('Cause of the last change, in one word.'),
      status: text('True, False or Unknown.'),
      type: text('Type of the condition, such as Ready.'),
    },
    { required: ['status', 'type'] },
  );
}
