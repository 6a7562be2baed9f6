// Makes elements. All text of the page goes through `h`, which shows every string as text and never
// as markup, so that no view has to think of it.

import { shown, visible } from './text.js';

const SVG = 'http://www.w3.org/2000/svg';
// Everything that a view may set. An attribute that runs script or loads something is not here.
const ATTRIBUTES = new Set(
  [
    'autocomplete checked class colspan cx cy d datetime dir disabled dominant-baseline',
    'focusable for height hidden id inputmode label lang list maxlength name open placeholder',
    'preserveAspectRatio r role rows rx scope selected spellcheck start tabindex text-anchor',
    'title type value viewBox width x x1 x2 y y1 y2',
  ].flatMap((names) => names.split(' ')),
);
const NAMED = /^(aria|data)-[a-z-]+$/;

/**
 * Makes an element. Attributes that are `null`, `undefined` or `false` are left out; `onclick` and
 * its like take functions; `href` takes places in this page only.
 */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Makes an SVG element in the same way. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) set(element, name, value);
  add(element, children);
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (typeof value === 'function') {
    element.addEventListener(name.replace(/^on/, ''), value);
  } else if (name === 'href') {
    if (!String(value).startsWith('#/')) throw new TypeError(`no link to ${value}`);
    element.setAttribute('href', value);
  } else if (!ATTRIBUTES.has(name) && !NAMED.test(name)) {
    throw new TypeError(`no attribute ${name}`);
  } else if (name === 'value') {
    // The value of a control is given back as it is.
    element.value = value;
  } else {
    element.setAttribute(name, value === true ? '' : visible(value));
  }
}

/** Appends children: nodes as they are, lists one by one, everything else as text. */
export function add(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : shown(child));
  }
}

/** Replaces the children. */
export function put(parent, ...children) {
  const fresh = document.createDocumentFragment();
  add(fresh, children);
  parent.replaceChildren(fresh);
}

/** The element of this id, which index.html has. */
export function byId(id) {
  return document.getElementById(id);
}

/**
 * Makes the children of `parent` those of `items`, by key. An element whose item did not change
 * stays, so that focus, selection and open details in it stay, too. In a changed one the focus
 * moves to the element with the same `data-focus`.
 */
export function keyed(parent, items, key, make) {
  const old = new Map([...parent.children].map((child) => [child.key, child]));
  const active = document.activeElement;
  const held = active?.dataset?.focus;
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    const text = JSON.stringify(item);
    let child = old.get(name);
    old.delete(name);
    if (child?.made !== text) {
      const fresh = make(item);
      // Properties, not attributes: a key can be a text of others.
      fresh.key = name;
      fresh.made = text;
      if (child) {
        const refocus = held && child.contains(active);
        if (place === child) place = fresh;
        child.replaceWith(fresh);
        if (refocus) fresh.querySelector(`[data-focus="${held}"]`)?.focus();
      }
      child = fresh;
    }
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
  for (const gone of old.values()) gone.remove();
}
