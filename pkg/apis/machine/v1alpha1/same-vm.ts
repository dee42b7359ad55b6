/**
 * Whether two provider ids name one VM; undefined when one of them is not known. Drivers and cloud controllers write different forms
 * of it: the original's driver for AWS records `aws:///eu-west-1/i-1` where the Node shows `aws:///eu-west-1a/i-1`, and Azure answers
 * in upper and lower case as it likes. What they have in common is the last segment, by which cluster-autoscaler matches too. An id
 * that ends before it names no VM, and is the same as itself only.
 */
export function isSameVM(a: string | undefined, b: string | undefined): boolean | undefined {
  if (a === undefined || a === '' || b === undefined || b === '') return undefined;
  if (a === b) return true;
  const segment = lastSegment(a);
  return segment !== '' && segment === lastSegment(b);
}

/**
 * Whether two ids are of one VM for certain: drivers make ids of what people write in classes, such as `WestEurope` and `westeurope`. The
 * last segment alone says nothing here: two accounts may each count their VMs, or name them as their Machines.
 */
export function isOneVM(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

function lastSegment(providerID: string): string {
  return providerID.slice(providerID.lastIndexOf('/') + 1).toLowerCase();
}

/** Whether the provider ids have one form, so that different ones are of different VMs. */
export function areOfOneScheme(a: string, b: string): boolean {
  return schemeOf(a) === schemeOf(b);
}

/** Who gave a provider id its form: `aws` of `aws:///zone/i-1`; kubelets without a cloud show ids of their own, or none. */
function schemeOf(providerID: string): string {
  return providerID.split('://', 1)[0] ?? '';
}
