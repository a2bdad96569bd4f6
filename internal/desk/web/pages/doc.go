// Package pages serves what people look at in a browser: pages that the server renders, their forms, and their style.
//
//   - A page reads through internal/desk/operations and decides nothing.
//   - Reading and acting work without JavaScript. With JavaScript, htmx fetches a part of the page again when the event
//     stream reports a change.
//   - Everything that changes state is a POST, and redirects to a page that says what became of it.
//   - Everything that agents wrote is escaped by html/template. The renderer removes control characters and marks that
//     change the direction of text from the whole page.
//   - The content security policy allows no inline scripts and styles, so no template has any.
package pages
