import { parseYaml, YamlError } from '../../../pkg/apis/yaml.ts';
import { fields, invalid, userDataOf, type Fields } from '../../../pkg/drivers/spec-fields.ts';

/**
 * The user data of a local machine is the kubeconfig, as YAML or JSON, with which its kubelet asks for its own certificate:
 * one context, whose user has the bootstrap token. In the Secret the token is written `<<BOOTSTRAP_TOKEN>>`. Returns the text;
 * throws InvalidArgument that names what is missing.
 */
export function bootstrapKubeconfigOf(secretData: Readonly<Record<string, Uint8Array>>): string {
  const text = userDataOf(secretData);
  const config = fields(parse(text), 'userData');
  const context = named(config, 'contexts', config['current-context'], 'context');
  const cluster = named(config, 'clusters', context['cluster'], 'cluster');
  const user = named(config, 'users', context['user'], 'user');
  if (typeof cluster['server'] !== 'string') throw invalid('userData: the cluster of the kubeconfig has no server');
  const { token } = user;
  if (typeof token !== 'string' || token === '') throw invalid('userData: the user of the kubeconfig has no token');
  if (token.includes('<<')) throw invalid(`userData: the placeholder ${token} was not replaced by a bootstrap token`);
  return text;
}

function parse(text: string): unknown {
  try {
    return parseYaml(text);
  } catch (err) {
    if (!(err instanceof YamlError)) throw err;
    throw invalid(`userData: must be a kubeconfig as YAML or JSON: ${err.message}`);
  }
}

/** The member `key` of the entry called `name` in one of a kubeconfig's lists. */
function named(config: Fields, list: string, name: unknown, key: string): Fields {
  const entries: unknown = config[list];
  const all: readonly unknown[] = Array.isArray(entries) ? entries : [];
  const found = all.map((entry, i) => fields(entry, `userData.${list}[${i}]`)).find((entry) => entry['name'] === name);
  if (typeof name !== 'string' || found === undefined) {
    throw invalid(`userData: the kubeconfig has no entry "${String(name)}" in ${list}`);
  }
  return fields(found[key], `userData.${list} "${name}": ${key}`);
}
