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
 * Whether two ids are of one VM for certain, where `name` may be both its name and that of another one in another place: drivers make ids of
 * what people write in classes, such as `WestEurope` and `westeurope`, or a region and a zone.
 */
export function isOneVM(a: string, b: string, name: string): boolean {
  return (
    a.toLowerCase() === b.toLowerCase() || (isSameVM(a, b) === true && !isMadeOf(lastSegment(a), name.toLowerCase()))
  );
}

const UUID = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g;

/** Whether the segment contains the name as words: the letters of a short one may be anywhere in what the provider has drawn. */
function isMadeOf(segment: string, name: string): boolean {
  const words = segment.replaceAll(UUID, (uuid) => (name.includes(uuid) ? uuid : ''));
  return new RegExp(`(?<![a-z\\d])${name.replaceAll('.', '\\.')}(?![a-z\\d])`).test(words);
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
